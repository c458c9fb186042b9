#include "sim/network.hpp"

#include <algorithm>
#include <ranges>

namespace lockflight::sim {
namespace {

std::uint32_t grid_hops(const network_profile& net, std::uint32_t from, std::uint32_t to) {
  std::uint32_t all = 0;
  for (const std::uint32_t extent : std::views::reverse(net.dimensions)) {
    const std::uint32_t a = from % extent;
    const std::uint32_t b = to % extent;
    const std::uint32_t apart = std::max(a, b) - std::min(a, b);
    all += net.wiring == shape::torus ? std::min(apart, extent - apart) : apart;
    from /= extent;
    to /= extent;
  }
  return all;
}

// Up to the lowest switch above both, and down again: nodes of one leaf switch are two links apart.
std::uint32_t tree_hops(const network_profile& net, std::uint32_t from, std::uint32_t to) {
  std::uint32_t up = 0;
  for (const std::uint32_t fanout : std::views::reverse(net.dimensions)) {
    if (from == to) break;
    ++up;
    from /= fanout;
    to /= fanout;
  }
  return 2 * up;
}

// Routers of a group are all joined, as are the groups, by one router each: which router of a group
// has the link to which other follows from their numbers, so that the links are spread evenly.
std::uint32_t dragonfly_hops(const network_profile& net, std::uint32_t from, std::uint32_t to) {
  const std::uint32_t routers = net.dimensions[1];
  const std::uint32_t nodes = net.dimensions[2];
  const std::uint32_t a = from / nodes;
  const std::uint32_t b = to / nodes;
  if (a == b) return 1;
  const std::uint32_t group_a = a / routers;
  const std::uint32_t group_b = b / routers;
  if (group_a == group_b) return 2;
  const bool leads_out = a % routers == group_b % routers;
  const bool leads_in = b % routers == group_a % routers;
  return 2 + (leads_out ? 0 : 1) + (leads_in ? 0 : 1);
}

}  // namespace

std::uint32_t hops(const network_profile& net, std::uint32_t from, std::uint32_t to) {
  if (from == to) return 0;
  switch (net.wiring) {
    case shape::flat:
      return 1;
    case shape::torus:
    case shape::mesh:
      return grid_hops(net, from, to);
    case shape::fat_tree:
      return tree_hops(net, from, to);
    case shape::dragonfly:
      return dragonfly_hops(net, from, to);
  }
  return 0;
}

}  // namespace lockflight::sim
