// Jain's index, the choice of writers, how operations are shared, and how fairness is computed.
#include "lab/bench/json/statistics.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "lab/bench/json/to_json.hpp"
#include "lab/bench/workload/plan.hpp"
#include "lab/bench/workload/random.hpp"
#include "lab/bench/workload/results.hpp"

namespace lockflight::bench {
namespace {

TEST(Jain, KnownValues) {
  const auto of = [](std::vector<double> shares) { return jain(shares); };
  EXPECT_DOUBLE_EQ(of({3, 3, 3}).value(), 1);
  EXPECT_DOUBLE_EQ(of({5, 0, 0, 0}).value(), 0.25);
  EXPECT_DOUBLE_EQ(of({1, 3}).value(), 16.0 / 20);
  EXPECT_FALSE(of({}).has_value());
  EXPECT_FALSE(of({0, 0}).has_value());
}

run_plan plan_of(int ranks, double writers, role by, workload what = workload::ecsb) {
  return {.what = what, .machine = rma::topology::flat(ranks), .writers = writers, .by = by};
}

std::vector<rma::rank_t> writers_of(int ranks, double writers, workload what = workload::ecsb) {
  const run_plan plan = plan_of(ranks, writers, role::process, what);
  const roles who(plan);
  std::vector<rma::rank_t> all;
  for (rma::rank_t r = 0; r < ranks; ++r)
    if (who.is_active(r) && who.is_writer(r)) all.push_back(r);
  return all;
}

TEST(Roles, WritersAreSpreadEvenly) {
  EXPECT_EQ(writers_of(8, 0.25), (std::vector<rma::rank_t>{0, 4}));
  EXPECT_EQ(writers_of(8, 0.5), (std::vector<rma::rank_t>{0, 2, 4, 6}));
  EXPECT_EQ(writers_of(4, 1).size(), 4u);
  EXPECT_TRUE(writers_of(4, 0).empty());
  EXPECT_TRUE(writers_of(2, 0.002).empty());
  for (int ranks = 1; ranks < 50; ++ranks)
    for (int w = 0; w <= ranks; ++w)
      EXPECT_EQ(writers_of(ranks, static_cast<double>(w) / ranks).size(),
                static_cast<std::size_t>(w));
}

TEST(Roles, WithDhtRankZeroOnlyOwns) {
  EXPECT_EQ(writers_of(5, 0.5, workload::dht), (std::vector<rma::rank_t>{1, 3}));
  EXPECT_EQ(writers_of(1, 1, workload::dht), (std::vector<rma::rank_t>{0}));
  const run_plan plan = plan_of(3, 0.5, role::operation, workload::dht);
  EXPECT_EQ(roles(plan).active(), 2);
  EXPECT_EQ(roles(plan).share(0, 5), 0u);
  EXPECT_EQ(roles(plan).share(1, 5), 3u);
  EXPECT_EQ(roles(plan).share(2, 5), 2u);
}

TEST(Roles, SharesAddUp) {
  for (const std::uint64_t ops : {1u, 7u, 1000u, 1003u}) {
    const run_plan plan = plan_of(6, 0, role::operation);
    std::uint64_t all = 0;
    for (rma::rank_t r = 0; r < 6; ++r) all += roles(plan).share(r, ops);
    EXPECT_EQ(all, ops);
  }
}

TEST(WarmUp, IsTheFirstTenthOfAll) {
  EXPECT_EQ(warm_up_of(std::uint64_t{9'000}), 1'000u);
  EXPECT_EQ(warm_up_of(std::uint64_t{1}), 1u);
  EXPECT_EQ(warm_up_of(std::uint64_t{0}), 0u);
  EXPECT_DOUBLE_EQ(warm_up_of(0.9), 0.1);
}

TEST(Random, RanksDifferAndSeedsRepeat) {
  random a(1, 0);
  random b(1, 1);
  random again(1, 0);
  int same = 0;
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t x = a.next();
    EXPECT_EQ(x, again.next());
    same += x == b.next() ? 1 : 0;
    EXPECT_LT(a.below(10), 10u);
    static_cast<void>(again.below(10));
    static_cast<void>(b.below(10));
  }
  EXPECT_EQ(same, 0);
}

void did(rank_result& r, int ops, std::uint64_t ticks) {
  for (int i = 0; i < ops; ++i) r.read.record(5);
  r.begun = 100;
  r.ended = 100 + ticks;
}

TEST(Fairness, IsAmongRanksOfOneRole) {
  const run_results results({.machine = rma::topology::flat(4)});
  // Ranks 0 and 2 write and are slow, alike; 1 and 3 read, one twice as fast as the other.
  did(results.of(0), 10, 1'000);
  did(results.of(2), 10, 1'000);
  did(results.of(1), 300, 1'000);
  did(results.of(3), 300, 2'000);
  const double readers = 450.0 * 450 / (2 * (300.0 * 300 + 150.0 * 150));
  EXPECT_NEAR(fairness(plan_of(4, 0.5, role::process), results.ranks()).value(), readers, 1e-12);
  // The same by operation: one role for all.
  EXPECT_LT(fairness(plan_of(4, 0.5, role::operation), results.ranks()).value(), readers);
}

TEST(Fairness, OfNothingIsNothing) {
  const run_results results({.machine = rma::topology::flat(2)});
  EXPECT_FALSE(fairness(plan_of(2, 0, role::operation), results.ranks()).has_value());
}

}  // namespace
}  // namespace lockflight::bench
