// The grid: which cells there are, what a cell's run is, and when one of our locks falls short.
#include "lab/reproduce/grid.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <tuple>

#include "lab/bench/bench.hpp"
#include "lab/reproduce/runs.hpp"
#include "lab/sim/machine.hpp"

namespace lockflight::reproduce {
namespace {

bool has(const std::vector<std::string>& names, const char* name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

TEST(Grid, CellsAreAllThatTheMachinesHaveRoomFor) {
  std::set<std::tuple<int, double, int, double>> of_a_large_one;
  std::set<std::string> machines;
  for (const contest& c : contests_of_grid({})) {
    machines.insert(c.in.machine);
    EXPECT_LE(static_cast<std::uint64_t>(c.in.procs), sim::find_machine(c.in.machine).ranks());
    if (c.in.machine == "piz-daint")
      of_a_large_one.emplace(c.in.procs, c.in.writers, c.in.locks, c.in.locality);
  }
  EXPECT_EQ(machines.size(), sim::names_of_machines().size());
  // Numbers of ranks, shares of writers, and 1 lock, or 100 or 1000 with three localities; 16 ranks
  // are one node there, and every lock is on it.
  EXPECT_EQ(of_a_large_one.size(), 3u * 6u * (1u + 2u * 3u) + 6u * 3u);
}

TEST(Grid, RivalsAreOfTheSameKind) {
  const auto contests = contests_of_grid({.machines = {"slingshot"}});
  ASSERT_FALSE(contests.empty());
  for (const contest& c : contests) {
    EXPECT_FALSE(has(c.rivals, c.lock.c_str()));
    EXPECT_FALSE(has(c.rivals, "pthread-mutex"));
    EXPECT_FALSE(has(c.rivals, "msg-deferred"));
    if (c.lock == "flight") {
      EXPECT_EQ(c.in.writers, 1);
    }
    EXPECT_EQ(has(c.rivals, "rma-mcs"), c.in.writers == 1);
    EXPECT_EQ(has(c.rivals, "rma-rw"), c.in.writers < 1);
    EXPECT_EQ(has(c.rivals, "flight"), c.in.writers == 1 && c.lock == "flight-rw");
    EXPECT_EQ(c.bound, 0.5);
  }
}

TEST(Grid, ChoicesLeaveTheOthersOut) {
  const auto chosen = contests_of_grid({.machines = {"scc", "piz-daint"}, .procs = {48, 64}});
  ASSERT_FALSE(chosen.empty());
  std::set<std::pair<std::string, int>> where;
  for (const contest& c : chosen) where.emplace(c.in.machine, c.in.procs);
  EXPECT_EQ(where, (std::set<std::pair<std::string, int>>{
                       {"scc", 48}, {"piz-daint", 48}, {"piz-daint", 64}}));
  EXPECT_LT(contests_of_grid({.quick = true}).size(), contests_of_grid({}).size() / 5);
  EXPECT_TRUE(contests_of_grid({.procs = {1'000'000'000}}).empty());
  std::set<int> locks;
  for (const contest& c : contests_of_grid({.locks = {1, 7}})) locks.insert(c.in.locks);
  EXPECT_EQ(locks, (std::set<int>{1, 7}));
  std::set<double> writers;
  for (const contest& c : contests_of_grid({.writers = 1})) writers.insert(c.in.writers);
  EXPECT_EQ(writers, std::set<double>{1});
  std::set<double> bounds;
  for (const contest& c : contests_of_grid({.quick = true, .below = 0.75})) bounds.insert(c.bound);
  EXPECT_EQ(bounds, std::set<double>{0.75});
}

// What the benchmark would refuse must not be found after an hour.
TEST(Grid, EveryRunIsOneThatTheBenchmarkKnows) {
  for (const bool quick : {false, true})
    for (const contest& c : contests_of_grid({.quick = quick})) {
      const bench::request asked = request_of(run_in(c.in, c.lock, {.quick = quick}));
      EXPECT_EQ(asked.procs, std::vector{c.in.procs});
      EXPECT_EQ(asked.ops % static_cast<std::uint64_t>(c.in.procs), 0u);
      EXPECT_GT(asked.most_events, 0u);
      EXPECT_EQ(asked.workload, c.in.locks == 1 ? "ecsb" : "table");
    }
}

grid_outcome outcome_of(double ours, double best, double bound) {
  return {.of = {.in = {.machine = "scc"}, .lock = "flight", .rivals = {"spin"}, .bound = bound},
          .ops_s = ours,
          .best = "spin",
          .best_ops_s = best,
          .why = ""};
}

TEST(Grid, ALockFallsShortBelowItsBound) {
  EXPECT_FALSE(outcome_of(50, 100, 0.5).falls_short());
  EXPECT_TRUE(outcome_of(49, 100, 0.5).falls_short());
  EXPECT_TRUE(outcome_of(400, 100, 5).falls_short());
  EXPECT_FALSE(outcome_of(1, 100, 0).falls_short());
  grid_outcome failed = outcome_of(200, 100, 0);
  failed.why = "broke mutual exclusion";
  EXPECT_TRUE(failed.falls_short()) << "whatever the bound";
  grid_outcome alone = outcome_of(1, 0, 0.5);
  alone.best.clear();
  EXPECT_FALSE(alone.falls_short()) << "no rival finished";
}

TEST(Grid, MediansAreByMachineWritersAndLock) {
  const auto on = [](const char* machine, double ours) {
    grid_outcome o = outcome_of(ours, 100, 0.5);
    o.of.in.machine = machine;
    return o;
  };
  std::vector<grid_outcome> all{on("scc", 300), on("scc", 100), on("scc", 40), on("fx10", 100),
                                on("fx10", 200)};
  const std::vector<grid_median> medians = medians_of(all);
  ASSERT_EQ(medians.size(), 3u);
  EXPECT_EQ(medians[0].machine, "scc");
  EXPECT_EQ(medians[0].median, 1);
  EXPECT_EQ(medians[0].least, 0.4);
  EXPECT_EQ(medians[0].cells, 3);
  EXPECT_EQ(medians[0].falls_short, 1);
  EXPECT_EQ(medians[1].machine, "fx10");
  EXPECT_EQ(medians[1].median, 1.5) << "of two the mean";
  EXPECT_EQ(medians[2].machine, "") << "all machines";
  EXPECT_EQ(medians[2].median, 1);
  EXPECT_EQ(medians[2].cells, 5);

  all[3].of.in.writers = 0;
  all[4].of.lock = "flight-rw";
  EXPECT_EQ(medians_of(all).size(), 6u);
}

TEST(Grid, MediansCountACellWithoutAResultAndNoneWithoutARival) {
  grid_outcome failed = outcome_of(0, 100, 0.5);
  failed.ops_s.reset();
  failed.why = "took too long";
  grid_outcome alone = outcome_of(1, 0, 0.5);
  alone.best.clear();
  const std::vector<grid_median> medians =
      medians_of({outcome_of(200, 100, 0.5), outcome_of(100, 100, 0.5), failed, alone});
  ASSERT_EQ(medians.size(), 2u);
  EXPECT_EQ(medians[0].cells, 3);
  EXPECT_EQ(medians[0].median, 1);
  EXPECT_EQ(medians[0].least, 0);
  EXPECT_EQ(medians[0].falls_short, 1);
  const nlohmann::json none = to_json({alone}).at("medians").at(0);
  EXPECT_EQ(none.at("cells"), 0);
  EXPECT_EQ(none.at("median"), nullptr);
}

TEST(Grid, TimesIsOfOperationsAndOfEvents) {
  const grid_cell in{.machine = "scc", .procs = 16, .locks = 100, .locality = 0.5};
  const bench::request once = request_of(run_in(in, "flight", {}));
  const bench::request often = request_of(run_in(in, "flight", {.times = 5}));
  EXPECT_EQ(often.ops, 5 * once.ops);
  EXPECT_EQ(often.most_events, 5 * once.most_events);
}

// The same runs by hand.
TEST(Grid, RatiosAreThoseOfTheRuns) {
  const grid_cell in{.machine = "osc-2005", .procs = 4, .writers = 1, .locks = 3, .locality = 0.5};
  const std::vector<contest> two{{in, "flight", {"spin", "d-mcs"}, 0.5},
                                 {in, "flight", {"flight-rw"}, 1e9}};
  const auto all = carry_out_grid(two, {.quick = true}, {.at_a_time = 2});
  ASSERT_EQ(all.size(), 2u);
  const auto throughput = [&](const char* lock) {
    return bench::run_simulated(
               request_of(run_in(in, lock, {.quick = true})), [] {}, [](double) {})
        .at("throughput_ops_s")
        .get<double>();
  };
  EXPECT_EQ(all[0].ops_s, throughput("flight"));
  EXPECT_EQ(all[0].best_ops_s, std::max(throughput("spin"), throughput("d-mcs")));
  EXPECT_EQ(all[0].others_ops_s.at("spin"), throughput("spin"));
  EXPECT_EQ(all[1].best, "flight-rw");
  EXPECT_TRUE(all[1].falls_short());

  const nlohmann::json rows = to_json(all).at("grid");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].at("ratio"), all[0].ratio());
  EXPECT_EQ(rows[1].at("falls_short"), true);
  EXPECT_EQ(rows[0].at("bound"), 0.5);
  EXPECT_EQ(rows[0].at("locks"), 3);
  const nlohmann::json medians = to_json(all).at("medians");
  ASSERT_EQ(medians.size(), 2u);
  EXPECT_EQ(medians[0].at("machine"), "osc-2005");
  EXPECT_EQ(medians[1].at("machine"), nullptr);
  EXPECT_EQ(medians[0].at("cells"), 2);
  EXPECT_EQ(medians[0].at("least"), std::min(all[0].ratio(), all[1].ratio()));
}

}  // namespace
}  // namespace lockflight::reproduce
