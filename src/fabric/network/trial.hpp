// A short trial of a network, for `lockflight doctor`: whether its read-modify-writes are atomic,
// and the cost of operations between hosts.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "lockflight/fabric/host_findings.hpp"
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

/// The findings of a trial.
struct trial_findings {
  bool fetch_add_atomic = false;
  bool compare_swap_atomic = false;
  std::vector<host_findings> hosts{};  ///< empty on one host
};

/// All ranks count together in two words of rank 0; then each host's first rank is the target of
/// another host's first rank. Collective.
[[nodiscard]] trial_findings try_network(const trial_launch& in, network& net);

}  // namespace lockflight::fabric::detail
