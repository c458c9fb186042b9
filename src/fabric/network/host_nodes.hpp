// The levels of a launch over hosts: its nodes, and below them what hwloc finds on each.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lockflight/fabric/launch.hpp"
#include "lockflight/rma/topology.hpp"

namespace lockflight::fabric::detail {

/// The number of nodes into which a variable of the environment cuts each host's ranks, for tests;
/// 1 without it. The number may differ from rank to rank.
struct wanted_nodes {
  explicit wanted_nodes(const char* variable);

  int each = 1;
  std::string why_not{};  ///< the fault of the host; empty if there is none
};

/// The first `ranks` ranks, by node. `first_of_host[r]` is the lowest rank on rank r's host.
[[nodiscard]] rma::topology nodes_of_hosts(const std::vector<int>& first_of_host, int ranks,
                                           int nodes_each);

/// Each rank's text, by rank.
using gather_function = std::function<std::vector<std::string>(const std::string& mine)>;

/// The levels of a launch whose ranks have these nodes: below them what hwloc shows to the first
/// rank of each, as many levels as all of these find. A rank that is bound to a core finds fewer.
/// The same on all ranks, those beyond the nodes included; collective, by one call of `gather`.
[[nodiscard]] levels levels_of(const rma::topology& nodes, int rank, const gather_function& gather);

}  // namespace lockflight::fabric::detail
