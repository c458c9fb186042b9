// Hops and links between nodes, for each way of wiring them, and the order of operations where
// routes meet.
#include "lab/sim/network.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "lab/sim/crossroads.hpp"

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

std::vector<std::uint32_t> route(const network_profile& net, std::uint32_t a, std::uint32_t b) {
  std::vector<std::uint32_t> links;
  find_route(net, a, b, links);
  return links;
}

TEST(routes, of_a_grid_are_as_long_as_hops_and_use_links_that_are_there) {
  for (const auto& net : {wired(shape::torus, {3, 4, 5}), wired(shape::mesh, {3, 4, 5})})
    for (std::uint32_t a = 0; a < 60; ++a)
      for (std::uint32_t b = 0; b < 60; ++b) {
        const auto links = route(net, a, b);
        ASSERT_EQ(links.size(), hops(net, a, b)) << a << " and " << b;
        for (const std::uint32_t link : links) ASSERT_LT(link, count_of_links(net));
        // The first link leaves a, and none is used twice.
        if (a != b) {
          ASSERT_EQ(links.front() / 6, a);
        }
        ASSERT_EQ(std::set<std::uint32_t>(links.begin(), links.end()).size(), links.size());
      }
}

// Dimension by dimension: the rest of a way is the way from there.
TEST(routes, of_a_grid_to_one_node_make_a_tree) {
  const auto net = wired(shape::torus, {4, 5});
  std::map<std::uint32_t, std::uint32_t> next;  // after a link, on the way to node 0
  for (std::uint32_t a = 1; a < 20; ++a) {
    const auto links = route(net, a, 0);
    for (std::size_t i = 0; i + 1 < links.size(); ++i)
      ASSERT_EQ(next.try_emplace(links[i], links[i + 1]).first->second, links[i + 1]);
  }
  // Node 6 is in row 1 and column 1: its row first, then its column.
  EXPECT_EQ(route(net, 6, 0),
            (std::vector<std::uint32_t>{(6 * 2 + 0) * 2 + 1, (1 * 2 + 1) * 2 + 1}));
}

// Between routers: a hop to and from a router's node is none of them.
TEST(routes, of_a_dragonfly_are_local_global_local) {
  const auto net = wired(shape::dragonfly, {4, 3, 2});
  for (std::uint32_t a = 0; a < 24; ++a)
    for (std::uint32_t b = 0; b < 24; ++b) {
      const auto links = route(net, a, b);
      ASSERT_LE(links.size(), hops(net, a, b));
      ASSERT_EQ(links.empty(), a / 2 == b / 2);
      for (const std::uint32_t link : links) ASSERT_LT(link, count_of_links(net));
    }
  // From router 0 of group 0 to its router 1, to group 1, whose link ends at router 0, to router 2.
  EXPECT_EQ(route(net, 0, 11), (std::vector<std::uint32_t>{1, 36 + 1, 3 * 3 + 2}));
}

TEST(routes, there_are_none_where_there_are_no_links) {
  EXPECT_EQ(count_of_links(wired(shape::flat, {})), 0);
  EXPECT_EQ(count_of_links(wired(shape::fat_tree, {2, 3})), 0);
  EXPECT_TRUE(route(wired(shape::flat, {}), 1, 2).empty());
}

// Two inputs are served alternately, and so are the two that share one of them.
TEST(crossroads, inputs_take_turns_whoever_shares_them) {
  crossroads all;
  EXPECT_TRUE(all.empty());
  const std::vector<std::uint32_t> near{7};
  const std::vector<std::uint32_t> far{8, 7};
  for (std::uint32_t i = 0; i < 4; ++i) {
    all.enter({}, 0, 100 + i);  // of the card's own node
    all.enter(near, 1, 200 + i);
    all.enter(far, 2, 300 + i);
  }
  std::vector<std::uint32_t> order;
  while (!all.empty()) order.push_back(all.take());
  EXPECT_EQ(order, (std::vector<std::uint32_t>{100, 200, 101, 300, 102, 201, 103, 301, 202, 302,
                                               203, 303}));
}

// Trees are dropped when they are empty, and grow again.
TEST(crossroads, everybody_who_enters_leaves_once) {
  crossroads all;
  const auto net = wired(shape::torus, {4, 5, 6});
  for (int again = 0; again < 3; ++again) {
    std::set<std::uint32_t> left;
    for (std::uint32_t i = 0; i < 600; ++i) all.enter(route(net, i % 120, 7), i % 120, i);
    while (!all.empty()) ASSERT_TRUE(left.insert(all.take()).second);
    ASSERT_EQ(left.size(), 600);
  }
}

TEST(crossroads, of_one_node_first_come_first_served) {
  crossroads all;
  const std::vector<std::uint32_t> way{3, 4};
  std::uint32_t in = 0;
  std::uint32_t out = 0;
  for (const std::uint32_t many : {3u, 1u, 20u, 100u}) {
    for (std::uint32_t i = 0; i < many; ++i) all.enter(way, 9, in++);
    for (std::uint32_t i = 0; i < many / 2; ++i) ASSERT_EQ(all.take(), out++);
  }
  while (!all.empty()) ASSERT_EQ(all.take(), out++);
  EXPECT_EQ(in, out);
}

}  // namespace
}  // namespace lockflight::sim
