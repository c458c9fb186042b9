// The nodes of a launch over hosts.
#pragma once

#include <string>
#include <vector>

#include "lockflight/rma/topology.hpp"

namespace lockflight::fabric::detail {

/// Into how many nodes a variable of the environment cuts each host's ranks, for tests; 1 without
/// it. It may be something else on each rank.
struct wanted_nodes {
  explicit wanted_nodes(const char* variable);

  int each = 1;
  std::string why_not{};  ///< what is wrong with it; empty if nothing is
};

/// The first `ranks` ranks, by node. `first_of_host[r]` is the lowest rank on rank r's host.
[[nodiscard]] rma::topology nodes_of_hosts(const std::vector<int>& first_of_host, int ranks,
                                           int nodes_each);

}  // namespace lockflight::fabric::detail
