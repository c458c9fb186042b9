// The UCX fabric: a wired launch (wired.hpp) on which every operation between nodes is UCX's (UCP).
//
//   ucx::environment world;
//   ucx::run(world, {.machine = ucx::discover(world, world.size()).machine}, body);
//
// UCX has two kinds of atomics. The CPU's, which the target's software does where a transport has
// none, as over TCP: they are atomic with this node's CPU instructions, so nic cells of the own
// node are accessed by these too. The card's: nic cells are accessed through UCX alone, loopback
// included, so that the two kinds of read-modify-write never meet on a cell (C2).
//
// This header includes nothing of UCX.
#pragma once

#include "lockflight/fabric/wired.hpp"
#include "lockflight/rma/cxx20.hpp"

namespace lockflight::ucx {

/// The names that the two wired fabrics share: ucx::run is wired::run, and so on.
using namespace wired;

/// UCX's own variables apply, such as UCX_TLS and UCX_NET_DEVICES. The constructors throw
/// `unavailable` also where UCX has no transport, and where ranks differ in whose atomics they use
/// (UCX_ATOMIC_MODE; without it, the card's where there is one).
class environment final : public wired::environment {
 public:
  static constexpr const char* fabric = "ucx";

  /// The ranks that the variables or a launcher describe.
  environment();
  /// The ranks of `by`, whatever the variables say.
  explicit environment(const introduction& by);
};

}  // namespace lockflight::ucx
