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

/// The seconds at which the last line with that text was written.
double last_time_of(const std::string& text, const std::vector<std::string>& trace) {
  double at = -1;
  for (const std::string& line : trace)
    if (line.find(text) != std::string::npos) at = std::stod(line);
  return at;
}

TEST(ClusterSimulation, ADeathIsKnownToAHundredHostsInTwoSeconds) {
  plan asked;
  asked.hosts = 100;
  asked.names = 1;
  asked.clients = 1;
  asked.times.margin = asked.times.ttl / 25;
  asked.faults_end = 0;  // no section is long
  asked.ends = 45'000'000;
  asked.stays_cut = true;  // one host is no member at the end
  asked.faults.push_back({.kind = fault_kind::host_dies,
                          .at = 25'000'000,
                          .lasts = asked.ends,
                          .host = 5,
                          .other = 0,
                          .client = 0,
                          .count = 0});
  std::vector<std::string> trace;
  world(asked, intact_core(), &trace).run();
  const double made = last_time_of("has the members", trace);
  EXPECT_GT(made, 25 + 6);  // its last beat may be a third of the TTL old
  EXPECT_LT(made, 25 + 11);
  EXPECT_LT(last_time_of("moves from", trace) - made, 2);
}

}  // namespace
}  // namespace lockflight::cluster::sim
