// How far nodes are from each other.
#pragma once

#include <cstdint>

#include "sim/machine.hpp"

namespace lockflight::sim {

/// The hops of a shortest way between two nodes; 0 to the own. A flat network counts one.
[[nodiscard]] std::uint32_t hops(const network_profile& net, std::uint32_t from, std::uint32_t to);

}  // namespace lockflight::sim
