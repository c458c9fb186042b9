// Links with a capacity, and routers that serve their inputs round robin.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "costs.hpp"

namespace lockflight::test {
namespace {

TEST(links, an_operation_waits_for_those_that_left_before_on_each_link) {
  auto profile = made_up_torus();
  profile.network.link_gap = 1'000'000;
  profile.network.arbiter = sim::arbitration::arrival;
  const auto ten = [](sim::port& p) {
    for (int i = 0; i < 10; ++i) p.put(far, 1);
    p.flush();
  };
  // They go out one a microsecond, and their answers come back as they went.
  EXPECT_DOUBLE_EQ(duration(two_nodes, ten, profile),
                   post + 9 * 1000 + 2 * way + to_memory + complete);
  // Not on the way to another node: nodes 1 and 7 are on both sides.
  const auto both_ways = [](sim::port& p) {
    p.put(plain_cell{1, 8}, 1);
    p.put(plain_cell{7, 8}, 1);
    p.flush();
  };
  EXPECT_DOUBLE_EQ(duration(rma::topology::balanced({8, 1}), both_ways, profile),
                   2 * post + 2 * way + to_memory + complete);
}

// Four ranks on each of nodes 1 to 3 of a ring send to node 0 over the same link: nodes 2 and 3
// share an input of node 1's router with each other, node 1 has one for itself.
std::map<int, double> ends_of_a_row(sim::arbitration arbiter) {
  constexpr int ranks_a_node = 4;
  auto profile = made_up_torus();
  profile.network.link_gap = 0;
  profile.network.arbiter = arbiter;
  profile.nic.atomic = profile.nic.atomic_cell = 10'000'000;
  std::map<int, double> done;
  port_list parts;
  for (int r = ranks_a_node; r < 4 * ranks_a_node; ++r)
    parts[r] = [&done, r](sim::port& p) {
      for (int i = 0; i < 40; ++i) std::ignore = rma::fetch_add_now(p, nic_cell{0, 16}, 1);
      double& last = done[r / ranks_a_node];
      last = std::max(last, ns(p.now()) / 10'000);  // in operations of the atomic unit
    };
  play(rma::topology::balanced({8, ranks_a_node}), parts, profile);
  return done;
}

TEST(links, first_come_first_served_is_fair) {
  const auto done = ends_of_a_row(sim::arbitration::arrival);
  for (const auto& [node, turn] : done) EXPECT_NEAR(turn, 480, 12) << node;
}

TEST(links, turns_at_each_router_favour_those_who_are_near) {
  auto done = ends_of_a_row(sim::arbitration::turns);
  EXPECT_NEAR(done[1], 320, 12);  // every second operation until then
  EXPECT_NEAR(done[2], 480, 12);
  EXPECT_NEAR(done[3], 480, 12);
}

// The unit works all the time, whatever the order.
TEST(links, turns_cost_nothing_in_all) {
  const auto far_ones = [](int) { return nic_cell{0, 16}; };
  auto profile = made_up_torus();
  profile.network.link_gap = 0;
  profile.network.hop = 0;
  const double turns = last_of(7, far_ones, profile);
  profile.network.arbiter = sim::arbitration::arrival;
  EXPECT_DOUBLE_EQ(turns, last_of(7, far_ones, profile));
}

}  // namespace
}  // namespace lockflight::test
