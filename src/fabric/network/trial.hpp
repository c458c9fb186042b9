// A short trial of a network, for `lockflight doctor`: whether its read-modify-writes are atomic,
// and the cost of operations between hosts.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "lockflight/fabric/findings.hpp"
#include "lockflight/fabric/launch.hpp"
#include "lockflight/fabric/networked.hpp"

namespace lockflight::fabric::detail {

/// The launch that a trial runs in. Its collective calls serve other ranks.
struct trial_launch {
  launch& ranks;
  int processors = 1;  ///< of this host
  std::function<void()> meet;
};

/// The cells of each rank that a trial needs, zeroed.
constexpr std::uint32_t words_of_trial = 512;

/// All ranks count together in two words of rank 0; then each host's first rank is the target of
/// another host's first rank. Sets all findings but the library. Collective.
void try_network(const trial_launch& in, network& net, findings& found);

}  // namespace lockflight::fabric::detail
