// Each broken copy of the core is found by the simulation.
#include <gtest/gtest.h>

#include <iostream>

#include "lab/cluster/campaign.hpp"
#include "tests/names/cluster/mutants/core_mutant.hpp"

namespace lockflight::cluster {
namespace {

constexpr std::uint64_t most_seeds = 60'000;

void expect_found(const std::vector<core_mutant>& all) {
  for (const core_mutant& each : all) {
    sim::campaign asked;
    asked.most_seeds = most_seeds;
    asked.shortens = false;
    const sim::progress made = sim::run(asked, each.core);
    std::cout << each.name << ": " << made.seeds << " histories\n" << std::flush;
    EXPECT_TRUE(made.found) << each.name << ": " << each.why << ", not found in " << made.seeds
                            << " histories";
  }
}

TEST(ClusterMutants, OfTheHomeAreFound) { expect_found(mutants_of_home()); }
TEST(ClusterMutants, OfTheOwnerAreFound) { expect_found(mutants_of_owner()); }
TEST(ClusterMutants, OfTheAgentAreFound) { expect_found(mutants_of_agent()); }
TEST(ClusterMutants, OfTheAcquireAreFound) { expect_found(mutants_of_acquire()); }
TEST(ClusterMutants, OfTheMembershipAreFound) { expect_found(mutants_of_membership()); }

}  // namespace
}  // namespace lockflight::cluster
