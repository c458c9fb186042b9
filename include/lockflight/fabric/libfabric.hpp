// The libfabric fabric: a wired launch (wired.hpp) on which every operation between nodes is
// libfabric's (OFI), which Slingshot and EFA speak among others.
//
//   libfabric::environment world;
//   libfabric::run(world, {.machine = libfabric::discover(world, world.size()).machine}, body);
//
// There are two ways to do an operation. LOCKFLIGHT_LIBFABRIC_OPERATIONS chooses one:
//
// - `provider`: FI_RMA and FI_ATOMIC. libfabric does not tell whether a provider's atomics are
//   atomic with the CPU's, so nic cells are accessed through libfabric alone, loopback included
//   (C2).
// - `messages`: an operation is a message that the target's software answers, with a CPU
//   instruction on the cell. Such operations are atomic with this node's CPU instructions, so nic
//   cells of the own node are accessed by these too.
//
// Without the variable the way is `provider` where a card does a provider's atomics (cxi, of
// Slingshot), and `messages` elsewhere: with all other providers the target's software does the
// atomics, too, and with messages the CPU accesses the own node's cells (docs/fabrics.md).
//
// This header includes nothing of libfabric.
#pragma once

#include "lockflight/fabric/wired.hpp"
#include "lockflight/rma/cxx20.hpp"

namespace lockflight::libfabric {

/// The names that the two wired fabrics share: libfabric::run is wired::run, and so on.
using namespace wired;

/// libfabric's own variables apply, such as FI_PROVIDER. The constructors throw
/// std::invalid_argument on another value of LOCKFLIGHT_LIBFABRIC_OPERATIONS, and `unavailable`
/// where ranks have different providers or ways to do operations, or a provider that does not reach
/// other hosts.
class environment final : public wired::environment {
 public:
  static constexpr const char* fabric = "libfabric";

  /// The ranks that the variables or a launcher describe.
  environment();
  /// The ranks of `by`, whatever the variables say.
  explicit environment(const introduction& by);
};

}  // namespace lockflight::libfabric
