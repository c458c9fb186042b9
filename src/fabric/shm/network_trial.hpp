// A short trial of a network: whether its read-modify-writes are atomic, and what operations
// between hosts cost. For `lockflight doctor`.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lockflight/fabric/host_findings.hpp"
#include "lockflight/fabric/networked.hpp"

namespace lockflight::fabric::detail {

/// The launch that a trial runs in. `meet` and `gather` are collective and serve other ranks.
struct trial_launch {
  int rank = 0;
  int size = 1;
  int processors = 1;  ///< of this host
  const std::vector<int>& first_of_host;
  const std::vector<std::string>& hosts;
  std::function<void()> meet;
  std::function<std::vector<std::string>(const std::string&)> gather;
};

/// The cells of each rank that a trial needs, zeroed.
constexpr std::uint32_t words_of_trial = 512;

struct atomics_found {
  bool fetch_add = false;
  bool compare_swap = false;
};

/// All ranks count together in two words of rank 0. Collective.
[[nodiscard]] atomics_found try_atomics(const trial_launch& in, network& net);

/// Each host's first rank as the target of another host's first rank; empty on one host.
/// Collective.
[[nodiscard]] std::vector<host_findings> try_hosts(const trial_launch& in, network& net);

}  // namespace lockflight::fabric::detail
