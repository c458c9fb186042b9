// The distances between nodes, and the links on the way.
#pragma once

#include <cstdint>
#include <vector>

#include "lab/sim/machine.hpp"

namespace lockflight::sim {

/// The hops of a shortest way between two nodes; 0 to the own. A flat network counts one.
[[nodiscard]] std::uint32_t hops(const network_profile& net, std::uint32_t from, std::uint32_t to);

/// How many links there are between the routers of a torus, a mesh or a dragonfly, one for each
/// direction. None elsewhere.
[[nodiscard]] std::uint32_t count_of_links(const network_profile& net);

/// The links from one node to another, in order; none to the node itself. In a grid the route
/// follows one dimension after the other, as they are listed.
void find_route(const network_profile& net, std::uint32_t from, std::uint32_t to,
                std::vector<std::uint32_t>& links);

}  // namespace lockflight::sim
