// The levels of a launch, from what hwloc finds on each node; it reads made-up machines here.
#include "fabric/network/host_nodes.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace lockflight::test {
namespace {

using fabric::detail::levels_of;
using fabric::detail::nodes_of_hosts;

/// What each rank of a launch finds. `hosts` has the machine of each node as HWLOC_SYNTHETIC
/// describes it; ranks beyond the nodes belong to the launch alone.
std::vector<fabric::levels> found_by_all(const rma::topology& nodes,
                                         const std::vector<const char*>& hosts, int launched) {
  struct has_said {};
  std::vector<std::string> said;
  for (int rank = 0; rank < launched; ++rank) {
    const int node = rank < nodes.ranks() ? nodes.node_of(rank) : 0;
    setenv("HWLOC_SYNTHETIC", hosts[static_cast<std::size_t>(node)], 1);
    try {
      static_cast<void>(levels_of(nodes, rank, [&](const std::string& mine) {
        said.push_back(mine);
        throw has_said();
        return said;
      }));
    } catch (const has_said&) {
    }
  }
  unsetenv("HWLOC_SYNTHETIC");
  std::vector<fabric::levels> found;
  for (int rank = 0; rank < launched; ++rank)
    found.push_back(levels_of(nodes, rank, [&](const std::string&) { return said; }));
  return found;
}

fabric::levels found(const rma::topology& nodes, const std::vector<const char*>& hosts) {
  return found_by_all(nodes, hosts, nodes.ranks()).front();
}

std::vector<int> elements(const fabric::levels& of, int level) {
  std::vector<int> all;
  for (rma::rank_t r = 0; r < of.machine.ranks(); ++r)
    all.push_back(of.machine.element_of(r, level));
  return all;
}

using names = std::vector<std::string>;

TEST(levels_of_a_launch, are_those_of_hwloc_below_the_nodes_on_all_ranks) {
  const rma::topology nodes = nodes_of_hosts({0, 0, 0, 0, 4, 4, 4, 4, 4}, 8, 1);
  const char* const host = "package:2 core:2 pu:1";
  for (const fabric::levels& found : found_by_all(nodes, {host, host}, 9)) {
    EXPECT_EQ(found.level_names, (names{"launch", "node", "package"}));
    EXPECT_EQ(found.machine.node_level(), 2);
    EXPECT_EQ(elements(found, 2), (std::vector{0, 0, 0, 0, 1, 1, 1, 1}));
    EXPECT_EQ(elements(found, 3), (std::vector{0, 0, 1, 1, 2, 2, 3, 3}));
  }
}

TEST(levels_of_a_launch, follow_the_ranks_of_each_node) {
  // Ranks are dealt out to the hosts in turn.
  const rma::topology nodes = nodes_of_hosts({0, 1, 0, 1, 0, 1, 0, 1}, 8, 1);
  const char* const host = "package:2 core:2 pu:1";
  EXPECT_EQ(elements(found(nodes, {host, host}), 3), (std::vector{0, 1, 0, 1, 2, 3, 2, 3}));
}

TEST(levels_of_a_launch, are_as_many_as_every_node_has) {
  const rma::topology nodes = nodes_of_hosts({0, 0, 0, 0, 4, 4, 4, 4}, 8, 1);
  EXPECT_EQ(found(nodes, {"package:2 core:2 pu:1", "core:4 pu:1"}).level_names,
            (names{"launch", "node"}));
}

TEST(levels_of_a_launch, one_node_is_no_level) {
  const fabric::levels one = found(nodes_of_hosts({0, 0, 0, 0}, 4, 1), {"package:2 core:2 pu:1"});
  EXPECT_EQ(one.level_names, (names{"launch", "package"}));
  EXPECT_EQ(one.machine.node_level(), 1);
}

TEST(levels_of_a_launch, are_no_more_than_a_tree_of_queues_climbs) {
  std::vector<int> first_of_host(32);
  for (std::size_t r = 16; r < 32; ++r) first_of_host[r] = 16;
  const char* const host = "package:2 numa:2 l3:2 core:2 pu:1";
  EXPECT_EQ(found(nodes_of_hosts(first_of_host, 32, 1), {host, host}).level_names,
            (names{"launch", "node", "package", "numa node"}));
}

TEST(levels_of_a_launch, no_hwloc_is_no_level) {
  const fabric::levels none = found(nodes_of_hosts({0, 0, 0, 0}, 4, 1), {"no such machine"});
  EXPECT_EQ(none.machine.ranks(), 4);
  EXPECT_EQ(none.level_names, names{"launch"});
}

}  // namespace
}  // namespace lockflight::test
