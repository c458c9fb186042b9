// Hops between nodes, for each way of wiring them.
#include "sim/network.hpp"

#include <gtest/gtest.h>

namespace lockflight::sim {
namespace {

network_profile wired(shape how, std::vector<std::uint32_t> dimensions) {
  return {.wiring = how, .dimensions = std::move(dimensions)};
}

TEST(hops, flat_is_one_to_everybody_else) {
  const auto net = wired(shape::flat, {});
  EXPECT_EQ(hops(net, 3, 3), 0);
  EXPECT_EQ(hops(net, 3, 900), 1);
}

// Nodes are numbered along the last dimension first: node 1 is next to node 0 there.
TEST(hops, torus_goes_round_the_shorter_way) {
  const auto net = wired(shape::torus, {5, 4});
  EXPECT_EQ(hops(net, 0, 1), 1);
  EXPECT_EQ(hops(net, 0, 2), 2);
  EXPECT_EQ(hops(net, 0, 3), 1);   // round the edge
  EXPECT_EQ(hops(net, 0, 4), 1);   // the next row
  EXPECT_EQ(hops(net, 0, 16), 1);  // the last row, round the edge
  EXPECT_EQ(hops(net, 0, 10), 4);  // two rows and two columns
}

TEST(hops, mesh_does_not_go_round) {
  const auto net = wired(shape::mesh, {5, 4});
  EXPECT_EQ(hops(net, 0, 3), 3);
  EXPECT_EQ(hops(net, 0, 16), 4);
  EXPECT_EQ(hops(net, 0, 19), 7);
}

TEST(hops, fat_tree_goes_up_to_the_common_switch) {
  const auto net = wired(shape::fat_tree, {2, 3, 4});
  EXPECT_EQ(hops(net, 0, 3), 2);    // one leaf switch
  EXPECT_EQ(hops(net, 0, 4), 4);    // its neighbour
  EXPECT_EQ(hops(net, 11, 12), 6);  // over the root
}

// 4 groups of 3 routers of 2 nodes. Router r of group g has the link to the groups h with
// h mod 3 = r.
TEST(hops, dragonfly_goes_local_global_local) {
  const auto net = wired(shape::dragonfly, {4, 3, 2});
  EXPECT_EQ(hops(net, 0, 1), 1);   // one router
  EXPECT_EQ(hops(net, 0, 4), 2);   // one group
  EXPECT_EQ(hops(net, 2, 6), 2);   // group 0, router 1, has the link to group 1, router 0
  EXPECT_EQ(hops(net, 0, 6), 3);   // to that router first
  EXPECT_EQ(hops(net, 0, 11), 4);  // and on to another one at the end
}

TEST(hops, are_the_same_both_ways) {
  for (const auto& net : {wired(shape::torus, {3, 4, 5}), wired(shape::mesh, {3, 4, 5}),
                          wired(shape::fat_tree, {3, 4, 5}), wired(shape::dragonfly, {3, 4, 5})})
    for (std::uint32_t a = 0; a < 60; ++a)
      for (std::uint32_t b = 0; b < 60; ++b) {
        ASSERT_EQ(hops(net, a, b), hops(net, b, a)) << a << " and " << b;
        ASSERT_EQ(hops(net, a, b) == 0, a == b);
      }
}

}  // namespace
}  // namespace lockflight::sim
