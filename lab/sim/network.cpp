#include "lab/sim/network.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
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

// All routers of a group are linked, and all groups are linked, by one router each. Which router of
// a group has the link to which group follows from their numbers, so that the links are spread
// evenly.
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

// Each node has two links in each dimension: to the next node and to the one before.
void find_grid_route(const network_profile& net, std::uint32_t from, std::uint32_t to,
                     std::vector<std::uint32_t>& links) {
  const auto dimensions = static_cast<std::uint32_t>(net.dimensions.size());
  std::uint32_t stride = 1;
  for (const std::uint32_t extent : net.dimensions) stride *= extent;
  std::uint32_t at = from;
  for (std::uint32_t d = 0; d < dimensions; ++d) {
    const std::uint32_t extent = net.dimensions[d];
    stride /= extent;
    std::uint32_t a = at / stride % extent;
    const std::uint32_t b = to / stride % extent;
    const std::uint32_t up = b >= a ? b - a : b + extent - a;
    const bool goes_up = net.wiring == shape::torus ? 2 * up <= extent : b > a;
    while (a != b) {
      links.push_back((at * dimensions + d) * 2 + (goes_up ? 0 : 1));
      const std::uint32_t next =
          goes_up ? (a + 1 == extent ? 0 : a + 1) : (a == 0 ? extent : a) - 1;
      at = at - a * stride + next * stride;
      a = next;
    }
  }
}

// A router's links to those of its group, then the groups' links to each other.
void find_dragonfly_route(const network_profile& net, std::uint32_t from, std::uint32_t to,
                          std::vector<std::uint32_t>& links) {
  const std::uint32_t groups = net.dimensions[0];
  const std::uint32_t routers = net.dimensions[1];
  const std::uint32_t nodes = net.dimensions[2];
  std::uint32_t at = from / nodes;
  const std::uint32_t end = to / nodes;
  const auto go_in_group = [&](std::uint32_t router) {
    if (at % routers == router) return;
    links.push_back(at * routers + router);
    at = at - at % routers + router;
  };
  const std::uint32_t group = at / routers;
  const std::uint32_t other = end / routers;
  if (group != other) {
    go_in_group(other % routers);
    links.push_back(groups * routers * routers + group * groups + other);
    at = other * routers + group % routers;
  }
  go_in_group(end % routers);
}

}  // namespace

std::uint32_t count_of_links(const network_profile& net) {
  const std::vector<std::uint32_t>& all = net.dimensions;
  switch (net.wiring) {
    case shape::flat:
    case shape::fat_tree:
      return 0;
    case shape::torus:
    case shape::mesh:
      return std::accumulate(all.begin(), all.end(), 1u, std::multiplies<>()) *
             static_cast<std::uint32_t>(2 * all.size());
    case shape::dragonfly:
      return all[0] * all[1] * all[1] + all[0] * all[0];
  }
  return 0;
}

void find_route(const network_profile& net, std::uint32_t from, std::uint32_t to,
                std::vector<std::uint32_t>& links) {
  links.clear();
  if (net.wiring == shape::torus || net.wiring == shape::mesh)
    find_grid_route(net, from, to, links);
  else if (net.wiring == shape::dragonfly)
    find_dragonfly_route(net, from, to, links);
}

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
