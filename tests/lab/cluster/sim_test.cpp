// A short simulation of whole clusters. `lockflight check --cluster` runs longer ones.
#include <gtest/gtest.h>

#include "lab/cluster/campaign.hpp"
#include "lab/cluster/world.hpp"
#include "tests/support/long_tests.hpp"

namespace lockflight::cluster::sim {
namespace {

TEST(ClusterSimulation, BreaksNoRule) {
  campaign asked;
  asked.most_seeds = 600;
  const progress made = run(asked, intact_core());
  EXPECT_FALSE(made.found) << text_of(*made.found, 200);
  EXPECT_GT(made.entries, 10'000u);
}

TEST(ClusterSimulation, IsTheSameTwice) {
  std::vector<std::string> first;
  std::vector<std::string> second;
  world(make_plan(5), intact_core(), &first).run();
  world(make_plan(5), intact_core(), &second).run();
  EXPECT_EQ(first, second);
  EXPECT_FALSE(first.empty());
}

// The host's last beat may be a third of the TTL old.
void expect_a_death_is_known_in_two_seconds(int hosts) {
  constexpr true_time second = 1'000'000;
  constexpr true_time dies_at = 25 * second;
  plan asked;
  asked.hosts = hosts;
  asked.names = hosts;  // else many wait for one name
  asked.clients = 1;
  asked.times.margin = asked.times.ttl / 25;
  asked.faults_end = 0;  // no section is long
  asked.ends = 45 * second;
  asked.stays_cut = true;  // one host is no member at the end
  asked.faults.push_back({.kind = fault_kind::host_dies,
                          .at = dies_at,
                          .lasts = asked.ends,
                          .host = 5,
                          .other = 0,
                          .client = 0,
                          .count = 0});
  world tested(asked, intact_core(), nullptr);
  tested.run();
  EXPECT_GT(tested.epoch_made_at(), dies_at + 6 * second);
  EXPECT_LT(tested.epoch_made_at(), dies_at + 11 * second);
  EXPECT_GT(tested.last_move_at(), tested.epoch_made_at());
  EXPECT_LT(tested.last_move_at() - tested.epoch_made_at(), 2 * second);
}

TEST(ClusterSimulation, ADeathIsKnownToAHundredHostsInTwoSeconds) {
  expect_a_death_is_known_in_two_seconds(100);
}

TEST(ClusterSimulation, ADeathIsKnownToAThousandHostsInTwoSeconds) {
  if (!test::long_tests()) GTEST_SKIP() << "a thousand hosts: ./dev test --all";
  expect_a_death_is_known_in_two_seconds(1'000);
}

}  // namespace
}  // namespace lockflight::cluster::sim
