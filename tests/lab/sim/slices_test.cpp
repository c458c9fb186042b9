// Cores that a rank shares with other processes.
#include <gtest/gtest.h>

#include <algorithm>

#include "costs.hpp"

namespace lockflight::test {
namespace {

// A machine with one core a node and slices of 10 us: with n others the rank has every (n + 1)-th.
double served_beside(std::uint32_t others, std::uint32_t cores = 1) {
  auto profile = made_up_machine();
  profile.cores = cores;
  profile.sockets = 1;
  profile.cpu.slice = 10'000'000;
  constexpr int messages = 1'000;
  double took = 0;
  play(two_nodes,
       {{0,
         [&](sim::port& p) {
           p.share_core(others);
           for (int i = 0; i < messages; ++i) std::ignore = p.receive();
           took = ns(p.now()) / messages;
         }},
        {1,
         [&](sim::port& p) {
           for (int i = 0; i < messages; ++i) p.send(0, {1, 2, 3});
         }}},
       profile);
  return took;
}

TEST(slices, are_taken_in_turn_with_the_others) {
  EXPECT_NEAR(served_beside(0), receive, 5);
  EXPECT_NEAR(served_beside(1), 2 * receive, 20);
  EXPECT_NEAR(served_beside(3), 4 * receive, 40);
}

TEST(slices, are_not_cut_where_there_are_cores_enough) {
  EXPECT_NEAR(served_beside(1, 2), receive, 5);
  EXPECT_NEAR(served_beside(2, 2), 1.5 * receive, 15);
}

// A waiter polls all the time, so it finds the answer in its next slice.
TEST(slices, a_wait_ends_in_a_slice_of_the_own) {
  auto profile = made_up_machine();
  profile.cores = 1;
  profile.sockets = 1;
  profile.cpu.slice = 10'000'000;
  double got = 0;
  play(two_nodes,
       {{0,
         [&](sim::port& p) {
           p.share_core(1);
           std::ignore = p.receive();
           got = ns(p.now());
         }},
        {1,
         [](sim::port& p) {
           p.pause(12'000);
           p.send(0, {1, 2, 3});
         }}},
       profile);
  EXPECT_DOUBLE_EQ(got, 20'000 + receive);
}

}  // namespace
}  // namespace lockflight::test
