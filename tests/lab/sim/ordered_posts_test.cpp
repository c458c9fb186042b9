// Machines whose posted operations to one rank take effect in their order (C30).
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "costs.hpp"

namespace lockflight::test {
namespace {

machine_profile ordered_machine() {
  auto profile = made_up_machine();
  profile.nic.ordered_posts = true;
  return profile;
}

// The get comes in right behind the swap, and waits at the card until that has taken effect.
TEST(ordered_posts, an_atomic_and_a_get_share_a_round_trip) {
  const auto swap_and_look = [](sim::port& p) {
    word before = 0;
    word seen = 0;
    p.swap(far_nic, 1, before);
    p.get(far, seen);
    p.flush(far.home);
  };
  const double one_round = post + 2 * way + to_memory + complete;
  auto profile = ordered_machine();
  profile.nic.atomic = 400'000;  // longer than a post
  EXPECT_DOUBLE_EQ(duration(two_nodes, swap_and_look, profile), one_round + 400);
  profile.nic.ordered_posts = false;
  EXPECT_DOUBLE_EQ(duration(two_nodes, swap_and_look, profile), one_round + 400);
  profile.nic.atomic = 50'000;  // shorter, so the get is the last to arrive, and nothing waits
  EXPECT_DOUBLE_EQ(duration(two_nodes, swap_and_look, profile), one_round + post);
  profile.nic.ordered_posts = true;
  EXPECT_DOUBLE_EQ(duration(two_nodes, swap_and_look, profile), one_round + post);
}

/// How often a get that is posted right after an operation to the same rank misses its effect.
int missed_by_gets(machine_profile profile) {
  int missed = 0;
  profile.jitter = 0.3;
  play(two_nodes,
       {{0,
         [&](sim::port& p) {
           for (word i = 1; i <= 200; ++i) {
             word before = 0;
             word seen = 0;
             if (i % 2 == 0)
               p.swap(far_nic, i, before);
             else
               p.put(far_nic, i);
             p.get(far_nic, seen);
             p.flush();
             missed += seen != i ? 1 : 0;
           }
         }}},
       profile);
  return missed;
}

TEST(ordered_posts, take_effect_in_order_where_the_machine_says_so) {
  EXPECT_EQ(missed_by_gets(ordered_machine()), 0);
  EXPECT_GT(missed_by_gets(made_up_machine()), 0);
  // Several engines, connections that are fetched, and a unit that takes long.
  auto profile = ordered_machine();
  profile.nic.injection_engines = 4;
  profile.nic.connections = 1;
  profile.nic.connection_miss = 900'000;
  profile.nic.atomic = 2'000'000;
  EXPECT_EQ(missed_by_gets(profile), 0);
  profile = ordered_machine();
  profile.network = made_up_torus().network;
  EXPECT_EQ(missed_by_gets(profile), 0);
  auto many_core = made_up_many_core();
  EXPECT_EQ(missed_by_gets(many_core), 0);
}

TEST(ordered_posts, are_what_the_port_says) {
  for (const bool ordered : {false, true}) {
    auto profile = made_up_machine();
    profile.nic.ordered_posts = ordered;
    std::ignore = duration(
        two_nodes, [&](sim::port& p) { EXPECT_EQ(rma::orders_posts(p), ordered); }, profile);
  }
}

// A flush of one target leaves the order of those to another one as it was.
TEST(ordered_posts, survive_a_flush_in_between) {
  auto profile = ordered_machine();
  profile.jitter = 0.3;
  const auto three_nodes = rma::topology::balanced({3, 1});
  int missed = 0;
  play(three_nodes,
       {{0,
         [&](sim::port& p) {
           for (word i = 1; i <= 100; ++i) {
             word before = 0;
             word seen = 0;
             p.put(plain_cell{2, 8}, i);
             p.swap(far_nic, i, before);
             p.get(far_nic, seen);
             p.flush(2);
             p.flush();
             missed += seen != i ? 1 : 0;
           }
         }}},
       profile);
  EXPECT_EQ(missed, 0);
}

}  // namespace
}  // namespace lockflight::test
