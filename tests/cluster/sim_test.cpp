// A short simulation of whole clusters. `lockflight check --cluster` runs longer ones.
#include <gtest/gtest.h>

#include "cluster/sim/campaign.hpp"
#include "cluster/sim/world.hpp"

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

}  // namespace
}  // namespace lockflight::cluster::sim
