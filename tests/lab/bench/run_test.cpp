// Short real runs: their reports are complete and consistent.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "lab/bench/bench.hpp"
#include "lab/bench/port/clock.hpp"
#include "lab/bench/workload/measure_table.hpp"
#include "lab/report/report.hpp"

namespace lockflight::bench {
namespace {

using nlohmann::json;

// A number of operations, not a time: in a moment of a busy machine a rank may do none.
request short_run(std::vector<std::string> locks, std::string workload = "ecsb") {
  request r;
  r.locks = std::move(locks);
  r.ops = workload == "cascade" || workload == "dht-writer" ? 50 : 1'000;
  r.workload = std::move(workload);
  r.writers = 0.2;
  return r;
}

void check_latency(const json& latency, std::uint64_t ops, const std::string& where) {
  double last = 0;
  for (const char* name : {"p25", "p50", "p75", "p99", "p999", "max"}) {
    if (ops == 0) {
      EXPECT_TRUE(latency[name].is_null()) << where << ' ' << name;
      continue;
    }
    ASSERT_TRUE(latency[name].is_number()) << where << ' ' << name;
    EXPECT_GE(latency[name].get<double>(), last) << where << ' ' << name;
    last = latency[name].get<double>();
  }
  if (ops > 0) {
    EXPECT_LE(latency["mean"].get<double>(), last * 1.001) << where;
  }
}

/// What must hold of every run of a lock that works.
void check_run(const json& run, int procs) {
  const std::string where = run["lock"].get<std::string>() + ' ' +
                            run["workload"].get<std::string>() + ' ' + std::to_string(procs);
  const auto ops = run["ops"].get<std::uint64_t>();
  EXPECT_EQ(run["violations"], 0) << where;
  EXPECT_EQ(run["procs"], procs) << where;
  EXPECT_EQ(run["fabric"], "shm") << where;
  EXPECT_GT(ops, 0u) << where;
  EXPECT_EQ(run["read"]["ops"].get<std::uint64_t>() + run["write"]["ops"].get<std::uint64_t>(), ops)
      << where;
  EXPECT_NEAR(run["throughput_ops_s"].get<double>() * run["elapsed_s"].get<double>(),
              static_cast<double>(ops), 0.5)
      << where;
  check_latency(run["latency_us"], ops, where);
  for (const char* side : {"read", "write"})
    check_latency(run[side]["latency_us"], run[side]["ops"].get<std::uint64_t>(), where + side);
  EXPECT_LE(run["max_wait_us"].get<double>(), run["latency_us"]["max"].get<double>()) << where;
  EXPECT_GT(run["fairness_jain"].get<double>(), 0) << where;
  EXPECT_LE(run["fairness_jain"].get<double>(), 1 + 1e-9) << where;
  EXPECT_FALSE(run["handoffs"].empty()) << where;
  EXPECT_LE(run["latency_cdf"].size(), 70u) << where;
  EXPECT_EQ(run["latency_cdf"].back()[1], 1) << where;
  if (procs == 1) {
    EXPECT_EQ(run["handoffs"][0], 0) << where;
  }
}

/// The locks of --lock all: those that do not defer.
std::vector<lock_row> all_locks() {
  std::vector<lock_row> rows = lock_table();
  std::erase_if(rows, [](const lock_row& row) { return row.about.defers; });
  return rows;
}

void check_all(const request& what) {
  const json bench = run(what);
  EXPECT_NO_THROW(report::validate(bench)) << what.workload;
  EXPECT_EQ(bench["runs"].size(), all_locks().size() * what.procs.size());
  std::size_t i = 0;
  for (const lock_row& row : all_locks())
    for (const int procs : what.procs) {
      EXPECT_EQ(bench["runs"][i]["lock"], row.about.name);
      EXPECT_EQ(bench["runs"][i]["kind"], lock::to_string(row.about.what));
      check_run(bench["runs"][i++], procs);
    }
}

class Workloads : public ::testing::TestWithParam<std::string> {};

TEST_P(Workloads, RunWithEveryLock) {
  request r = short_run({}, GetParam());
  for (const lock_row& row : all_locks()) r.locks.emplace_back(row.about.name);
  check_all(r);
}

INSTANTIATE_TEST_SUITE_P(All, Workloads,
                         ::testing::Values("lb", "ecsb", "sob", "wcsb", "warb", "dht", "table",
                                           "mix", "cascade", "contention", "dht-writer", "zipf"),
                         [](const auto& instance) {
                           std::string name = instance.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// Of four locks with exponent 2, the first is drawn in 1 / (1 + 1/4 + 1/9 + 1/16) of the
// operations.
TEST(Run, ZipfsLawHasThePopularOnesFirst) {
  const zipf_law law(4, 2);
  const double first = 1 / (1 + 1.0 / 4 + 1.0 / 9 + 1.0 / 16);
  EXPECT_EQ(law.at(0), 0u);
  EXPECT_EQ(law.at(first - 1e-9), 0u);
  EXPECT_EQ(law.at(first + 1e-9), 1u);
  EXPECT_EQ(law.at(first * 1.25 + 1e-9), 2u);
  EXPECT_EQ(law.at(1 - 1e-12), 3u);
  const zipf_law even(3, 0);
  EXPECT_EQ(even.at(0.33), 0u);
  EXPECT_EQ(even.at(0.34), 1u);
  EXPECT_EQ(even.at(0.67), 2u);
  EXPECT_EQ(zipf_law(1, 0.99).at(0.5), 0u);
}

TEST(Run, ZipfLeavesTheRanksOfTheServersNodeOut) {
  request r = short_run({"dslr"}, "zipf");
  r.fabric = "sim";
  r.profile = "cx5-100g";
  r.procs = {6};
  r.levels = "3x2";
  r.table_size = 10;
  r.ops = 8'000;
  const json bench = run(r);
  const json& one = bench["runs"][0];
  EXPECT_EQ(one["locks"], 10);
  EXPECT_EQ(one["skew"], 0.99);
  EXPECT_EQ(one["ops"], 8'000);
  EXPECT_EQ(one["violations"], 0);
  EXPECT_EQ(one["local"]["ops"], 0) << "no client is on the node of the locks";
  EXPECT_NEAR(one["remote"]["ops"].get<double>(), 8'000, 0);
}

TEST(Run, TableTellsItsNodeFromTheOthers) {
  request r = short_run({"d-mcs"}, "table");
  r.procs = {4};
  r.levels = "2x2";
  r.table_size = 10;
  r.locality = 0.75;
  r.ops = 8'000;
  const json bench = run(r);
  const json& table = bench["runs"][0];
  EXPECT_EQ(table["locks"], 10);
  EXPECT_EQ(table["locality"], 0.75);
  EXPECT_NEAR(table["local"]["ops"].get<double>(), 6'000, 300);
  EXPECT_EQ(table["local"]["ops"].get<int>() + table["remote"]["ops"].get<int>(), 8'000);
  EXPECT_EQ(table["violations"], 0);
  EXPECT_NO_THROW(report::validate(bench));
}

// On a machine whose costs are known, since it is simulated.
request on_osc_2005(std::vector<std::string> locks, std::string workload, std::string levels) {
  request r = short_run(std::move(locks), std::move(workload));
  r.ops = 0;
  r.seconds = 0.02;
  r.fabric = "sim";
  r.profile = "osc-2005";
  r.levels = std::move(levels);
  r.writers = 1;
  return r;
}

// Ten locks on a hundred ranks, and yet a node has no more than another.
TEST(Run, LocksOfATableAreSpreadOverTheNodesFirst) {
  run_plan plan{.what = workload::table, .machine = rma::topology::balanced({4, 3}), .locks = 10};
  std::vector<rma::rank_t> homes;
  for (std::uint32_t i = 0; i < plan.locks; ++i) homes.push_back(home_in(plan, i));
  EXPECT_EQ(homes, (std::vector<rma::rank_t>{0, 3, 6, 9, 1, 4, 7, 10, 2, 5}));
  // Nodes of 3 and 1 ranks, and one whose ranks are not next to each other.
  plan.machine = rma::topology({{0, 0, 0, 0, 0, 0}, {0, 0, 1, 0, 2, 1}}, 2);
  for (std::uint32_t i = 0; i < plan.locks; ++i)
    EXPECT_EQ(plan.machine.node_of(home_in(plan, i)), static_cast<int>(i % 3));
}

TEST(Run, PrimitivesTakeWhatTheMachineSays) {
  request r = on_osc_2005({"all"}, "primitive", "2x1");
  r.procs = {2};
  r.ops = 100;
  r.machine_set["jitter"] = 0;
  const json bench = run(r);
  ASSERT_EQ(bench["runs"].size(), operations().size());
  std::map<std::string, double> us;
  for (const json& one : bench["runs"]) us[one["lock"]] = one["latency_us"]["mean"].get<double>();
  EXPECT_NEAR(us["compare-swap"], 11.456, 0.02);  // the sum in lab/machines/osc-2005.toml
  EXPECT_EQ(us["compare-swap"], us["fetch-add"]);
  EXPECT_NEAR(us["put"], 11.802, 0.02);
  EXPECT_NEAR(us["message"], 14.198, 0.02);
  EXPECT_EQ(bench["runs"][0]["kind"], "none");
  EXPECT_NO_THROW(report::validate(bench));
  r.operation = "put";
  EXPECT_EQ(run(r)["runs"].size(), 1u);
}

// An operation lies between two readings of the clock, which add the time of one.
TEST(Run, PrimitivesOnSharedMemoryTakeTime) {
  request r = short_run({"all"}, "primitive");
  r.procs = {2};
  const json bench = run(r);
  for (const json& one : bench["runs"])
    EXPECT_GT(one["latency_us"]["p50"].get<double>(), 0) << one["lock"];
}

TEST(Run, AStencilOnSharedMemory) {
  request r = short_run({"all"}, "stencil");
  r.procs = {1, 3};
  r.ops = 30;
  r.flags_at = 0;
  const json bench = run(r);
  ASSERT_EQ(bench["runs"].size(), 2u);
  for (const json& one : bench["runs"]) {
    EXPECT_EQ(one["ops"], 30);
    EXPECT_EQ(one["lock"], "stencil");
    EXPECT_EQ(one["kind"], "none");
    EXPECT_GT(one["latency_us"]["p50"].get<double>(), 0);
  }
  EXPECT_NO_THROW(report::validate(bench));
}

TEST(Run, AcquireAndReleaseAreTimedApart) {
  request r = on_osc_2005({"dq-fair"}, "contention", "2x1");
  r.procs = {2};
  r.ops = 100;
  json one = run_simulated(r);
  const auto acquire = one["acquire_us"].get<double>();
  const auto release = one["release_us"].get<double>();
  EXPECT_NEAR(acquire + release, one["latency_us"]["mean"].get<double>(), 1e-6);
  EXPECT_NEAR(acquire / release, 2, 0.1);  // two operations to acquire, one to release
  r.workload = "ecsb";
  EXPECT_TRUE(run_simulated(r)["acquire_us"].is_null());
}

TEST(Run, WhatAServerSendsCountsToo) {
  request r = on_osc_2005({"dlm-server"}, "contention", "2x1");
  r.procs = {2};
  r.ops = 90;
  EXPECT_EQ(run_simulated(r)["fabric_ops"]["messages"], 4 * 90);
}

TEST(Run, ASimulatedServerSaysHowBusyItIs) {
  request r = on_osc_2005({"dlm-server"}, "contention", "5x1");
  r.procs = {5};
  r.table_size = 4;
  r.ops = 800;
  json one = run_simulated(r);
  EXPECT_NEAR(one["server"]["on_messages"], 1, 0.05);  // it bounds the throughput
  EXPECT_EQ(one["server"]["on_atomics"], 0);
  r.locks = {"dq"};
  one = run_simulated(r);
  EXPECT_EQ(one["server"]["on_messages"], 0);
  EXPECT_NEAR(one["server"]["on_atomics"], 0.9, 0.1);
  r.workload = "ecsb";
  r.table_size.reset();
  EXPECT_FALSE(run_simulated(r).contains("server"));
}

// Where a client starves, its compare-and-swaps fail all the same.
TEST(Run, CompareSwapsThatFailAreCounted) {
  request r = on_osc_2005({"dq"}, "contention", "2x1");
  r.procs = {2};
  r.ops = 90;
  json one = run_simulated(r);
  EXPECT_EQ(one["compare_swaps"]["posted"], 2 * 90);
  EXPECT_EQ(one["compare_swaps"]["failed"], 0);
  r.levels = "31x1";
  r.procs = {31};
  r.table_size = 15;
  r.ops = 0;
  r.seconds = 0.05;
  one = run_simulated(r);
  const auto posted = one["compare_swaps"]["posted"].get<double>();
  EXPECT_NEAR(one["compare_swaps"]["failed"].get<double>() / posted, 0.5, 0.1);
}

TEST(Run, AcquireAndReleaseVaryApart) {
  request r = on_osc_2005({"dq-fair"}, "contention", "2x1");
  r.procs = {2};
  r.ops = 2000;
  json one = run_simulated(r);
  // Two independent operations to acquire, one to release.
  EXPECT_NEAR(one["acquire_sd_us"].get<double>() / one["release_sd_us"].get<double>(), std::sqrt(2),
              0.1);
  EXPECT_LT(one["acquire_sd_us"], one["acquire_us"]);
  r.machine_set = {{"jitter", 0}};
  one = run_simulated(r);
  EXPECT_LT(one["acquire_sd_us"], 0.02);
  r.workload = "ecsb";
  EXPECT_TRUE(run_simulated(r)["acquire_sd_us"].is_null());
}

TEST(Run, EachRanksTimeIsOfItsOwnOperations) {
  request r = on_osc_2005({"d-mcs"}, "ecsb", "4x1");
  r.procs = {4};
  r.ops = 400;
  const json one = run_simulated(r);
  const json& ranks = one["rank_elapsed_s"];
  EXPECT_GT(ranks["fastest"], 0);
  EXPECT_LE(ranks["fastest"], ranks["mean"]);
  EXPECT_LE(ranks["mean"], ranks["slowest"]);
  EXPECT_DOUBLE_EQ(ranks["slowest"], one["elapsed_s"]);  // counted from where the run is
  EXPECT_TRUE(ranks["near"].is_number());
  r.levels = "1x2";
  r.procs = {2};
  EXPECT_TRUE(run_simulated(r)["rank_elapsed_s"]["near"].is_null());  // one node has no hops
}

TEST(Run, TheRanksMeansAreOneValueForEachRank) {
  request r = on_osc_2005({"spin"}, "table", "4x1");
  r.procs = {4};
  r.table_size = 1;
  r.ops = 400;
  const json one = run_simulated(r);
  const json& means = one["rank_latency_us"];
  // As many operations each, so the mean of the means is the mean.
  EXPECT_NEAR(means["mean"], one["latency_us"]["mean"],
              0.01 * one["latency_us"]["mean"].get<double>());
  EXPECT_LE(means["p25"], means["p50"]);
  EXPECT_LE(means["p50"], means["p99"]);
  EXPECT_EQ(means["p99"], means["max"]);
  EXPECT_LT(means["max"], one["latency_us"]["max"]);
  ASSERT_EQ(one["rank_latency_cdf"].size(), 4u);
  EXPECT_EQ(one["rank_latency_cdf"][0][1], 0.25);
  EXPECT_EQ(one["rank_latency_cdf"][3][0], means["max"]);
  EXPECT_GT(one["latency_us"]["deviation"], 0);
  EXPECT_LT(one["latency_us"]["deviation"], one["latency_us"]["max"]);
}

TEST(Run, SimulatedRunsAreOneOnSim) {
  request r = on_osc_2005({"d-mcs", "spin"}, "ecsb", "2x1");
  r.procs = {2};
  EXPECT_THROW(static_cast<void>(run_simulated(r)), bad_request);
  EXPECT_THROW(static_cast<void>(run_simulated(short_run({"d-mcs"}))), bad_request);
}

// GBH's global counter is one for a window, at rank 0: with 32 ranks that lock exclusively it
// delays all of them; shared locks do not use it.
TEST(Run, TheLocksOfAWindowShareWhatServesAllOfThem) {
  request r = on_osc_2005({"fompi-rw"}, "mix", "32x1");
  r.procs = {32};
  r.ops = 3'200;
  const auto median = [&] { return run_simulated(r)["latency_us"]["p50"].get<double>(); };
  const double exclusive = median();
  r.locks = {"d-mcs"};
  EXPECT_GT(exclusive, 1.5 * median());
}

TEST(Run, MixTakesALockOfEachRank) {
  request r = short_run({"fompi-rw"}, "mix");
  r.procs = {4};
  r.levels = "2x2";
  r.ops = 4'000;
  const json bench = run(r);
  EXPECT_EQ(bench["runs"][0]["locks"], 4);
  EXPECT_NEAR(bench["runs"][0]["local"]["ops"].get<double>(), 2'000, 200);
}

// Client c takes lock c mod L: with a lock for each client there is no handoff.
TEST(Run, WithoutContentionNobodyWaits) {
  request r = short_run({"d-mcs"}, "contention");
  r.procs = {3};
  r.table_size = 2;
  r.ops = 2'000;
  json bench = run(r);
  EXPECT_EQ(bench["runs"][0]["contention"], 0);
  EXPECT_EQ(bench["runs"][0]["handoffs"][0], 0);
  EXPECT_EQ(bench["runs"][0]["ops"], 2'000);
  // In virtual time: here one client may have done with all before the other gets a time slice.
  r.fabric = "sim";
  r.profile = "fx100";
  r.table_size = 1;
  r.hold_us = 5;
  bench = run(r);
  EXPECT_EQ(bench["runs"][0]["contention"], 0.5);
  EXPECT_GT(bench["runs"][0]["handoffs"][0], 0);
}

TEST(Run, OperationsThatAreNotTimedCountAsTheOthersDo) {
  request r = short_run({"fompi-rw"});
  r.procs = {1};
  r.writers = 0.5;
  r.ops = 1'000;
  r.sample = 10;
  const json run_json = run(r)["runs"][0];
  EXPECT_EQ(run_json["ops"], 1'000);
  EXPECT_EQ(run_json["sample"], 10);
  EXPECT_EQ(run_json["read"]["ops"].get<int>() + run_json["write"]["ops"].get<int>(), 1'000);
  // Each is two operations of the lock: none was left out.
  EXPECT_GE(run_json["fabric_ops"]["nic"]["fetch_add"].get<int>(), 1'000);
  EXPECT_EQ(run_json["latency_cdf"].back()[1], 1);
  r.sample = 1'000;
  r.writers = 0;
  EXPECT_TRUE(run(r)["runs"][0]["write"]["latency_us"]["p50"].is_null());
  EXPECT_FALSE(run(r)["runs"][0]["read"]["latency_us"]["p50"].is_null());
}

// Every rank has the lock between rank 0's release and its next acquire: d-mcs is first come, first
// served.
TEST(Run, ACascadeIsOneHandoffForEachRank) {
  request r = short_run({"d-mcs"}, "cascade");
  r.procs = {4};
  r.ops = 50;
  const json bench = run(r);
  EXPECT_EQ(bench["runs"][0]["ops"], 50);
  EXPECT_EQ(bench["runs"][0]["write"]["ops"], 50);
}

TEST(Run, ASweepIsARunForEachValueWhereThereIsTheParameter) {
  request r = short_run({"d-mcs", "rma-rw"});
  r.sweep = "T_R";
  r.sweep_values = {10, 100, 1'000};
  const json bench = run(r);
  ASSERT_EQ(bench["runs"].size(), 4u);
  EXPECT_EQ(bench["runs"][0]["lock"], "d-mcs");
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ(bench["runs"][i + 1]["params"]["T_R"], r.sweep_values[i]);
}

TEST(Run, ASweptSettingIsARunForEachValueAndLock) {
  const auto swept = [](const char* workload, const char* name, std::vector<double> values) {
    request r = short_run({"d-mcs", "dq"}, workload);
    r.sweep = name;
    r.sweep_values = std::move(values);
    return run(r)["runs"];
  };
  const struct {
    const char* workload;
    const char* name;
    const char* field;
    std::vector<double> values;
  } cases[] = {{"mix", "writers", "writers", {0, 0.5}},
               {"contention", "locks", "locks", {1, 2}},
               {"contention", "hold", "hold_us", {0, 1.5}},
               {"table", "locality", "locality", {1}},
               {"dht-writer", "bytes", "bytes", {8, 64}}};
  for (const auto& c : cases) {
    const json runs = swept(c.workload, c.name, c.values);
    ASSERT_EQ(runs.size(), 2 * c.values.size()) << c.name;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      EXPECT_EQ(runs[i][c.field], c.values[i / 2]) << c.name;
      EXPECT_EQ(runs[i]["lock"], i % 2 == 0 ? "d-mcs" : "dq") << c.name;
    }
  }
}

TEST(Run, AmongThreads) {
  request r = short_run({"all"});
  r.threads = true;
  check_all(r);
}

TEST(Run, WithMoreRanksThanCoresAndLevels) {
  request r = short_run({"all"});
  r.procs = {8};
  r.levels = "2x2x2";
  check_all(r);
}

TEST(Run, Alone) {
  request r = short_run({"all"});
  r.procs = {1};
  check_all(r);
}

TEST(Run, OperationsAreCountedExactly) {
  for (const std::uint64_t ops : {1u, 3u, 1'001u}) {
    request r = short_run({"rma-rw"});
    r.procs = {4};
    r.ops = ops;
    const json bench = run(r);
    EXPECT_EQ(bench["runs"][0]["ops"], ops);
    EXPECT_EQ(bench["runs"][0]["violations"], 0);
  }
}

TEST(Run, FabricOperationsAreThoseOfTheMeasuredPart) {
  request r = short_run({"spin"}, "ecsb");
  r.procs = {1};
  r.ops = 1'000;
  const json bench = run(r);
  const json& nic = bench["runs"][0]["fabric_ops"]["nic"];
  EXPECT_EQ(nic["cas"], 1'000);
  EXPECT_EQ(nic["put"], 1'000);
  EXPECT_EQ(nic["flush"], 2'000);
  EXPECT_EQ(nic["loopback"], 2'000);
  EXPECT_EQ(nic["get"], 0);
}

TEST(Run, RolesByProcess) {
  request r = short_run({"rma-rw"}, "warb");
  r.procs = {4};
  r.by = role::process;
  r.writers = 0.25;
  r.ops = 4'000;
  const json bench = run(r);
  EXPECT_EQ(bench["runs"][0]["write"]["ops"], 1'000);
  EXPECT_EQ(bench["runs"][0]["read"]["ops"], 3'000);
  EXPECT_EQ(bench["runs"][0]["role"], "process");
}

TEST(Run, RolesByOperationRepeatWithTheSeed) {
  request r = short_run({"d-mcs"});
  r.ops = 10'000;
  const auto writes = [&] { return run(r)["runs"][0]["write"]["ops"].get<std::uint64_t>(); };
  const std::uint64_t first = writes();
  EXPECT_NEAR(static_cast<double>(first), 2'000, 200);
  EXPECT_EQ(writes(), first);
  r.seed = 2;
  EXPECT_NE(writes(), first);
}

TEST(Run, TimeIsKept) {
  request r = short_run({"pthread-mutex"});
  r.ops = 0;
  r.seconds = 0.2;
  EXPECT_GE(run(r)["runs"][0]["elapsed_s"].get<double>(), 0.2 * 0.99);
}

// Its operations at the release are done: a reader of the word sees them, and they cost what the
// lock says.
TEST(Run, ALockThatDefers) {
  for (const char* const workload : {"ecsb", "sob", "warb", "lb", "mix"}) {
    request r = short_run({"msg-deferred"}, workload);
    r.procs = {2};
    const json bench = run(r);
    EXPECT_NO_THROW(report::validate(bench)) << workload;
    const json& it = bench["runs"][0];
    EXPECT_GT(it["ops"], 0) << workload;
    // Under lb it has nothing to do, and the clock's own cost is taken off: no time may be left.
    const bool does_nothing = std::string(workload) == "lb";
    if (does_nothing)
      EXPECT_GE(it["latency_us"]["mean"], 0) << workload;
    else
      EXPECT_GT(it["latency_us"]["mean"], 0) << workload;
    const bool accesses = std::string(workload) == "sob";
    EXPECT_EQ(it["fabric_ops"]["messages"] > 0, accesses) << workload;
  }
}

TEST(Run, HashTableWithoutALock) {
  request r = short_run({"all"}, "dht");
  r.procs = {3};
  const json bench = run(r);
  ASSERT_EQ(bench["runs"].size(), all_locks().size() + 1);
  const json& last = bench["runs"].back();
  EXPECT_EQ(last["lock"], "fompi-a");
  EXPECT_EQ(last["kind"], "none");
  EXPECT_EQ(last["violations"], 0);
  EXPECT_GT(last["ops"], 0);
  EXPECT_TRUE(last["latency_us"]["mean"].is_null());
  EXPECT_GT(last["fabric_ops"]["nic"]["cas"], 0);
}

TEST(Run, HandoffsAreCountedByLevel) {
  request r = short_run({"rma-mcs"}, "wcsb");
  r.procs = {4};
  r.levels = "2x2";
  r.ops = 40'000;  // a rank's take longer than a slice of a busy machine
  r.set = {{"T_L2", 1}};
  const json bench = run(r);
  const json& handoffs = bench["runs"][0]["handoffs"];
  ASSERT_EQ(handoffs.size(), 2u);
  EXPECT_GT(handoffs[0], 0) << "between elements";
  EXPECT_GT(handoffs[1], 0) << "inside an element";
  EXPECT_EQ(bench["runs"][0]["params"]["T_L2"], 1);
  EXPECT_EQ(bench["runs"][0]["levels"], "2x2");
}

TEST(Run, SaysWhereItIs) {
  request r = short_run({"spin", "d-mcs"});
  r.ops = 0;
  r.seconds = 0.4;
  std::vector<progress> seen;
  static_cast<void>(run(r, [&](const progress& p) { seen.push_back(p); }));
  ASSERT_FALSE(seen.empty());
  EXPECT_EQ(seen.front().lock, "spin");
  EXPECT_EQ(seen.back().lock, "d-mcs");
  EXPECT_EQ(seen.back().run, 1u);
  EXPECT_EQ(seen.back().runs, 2u);
  EXPECT_EQ(seen.back().procs, 2);
  for (std::size_t i = 0; i < seen.size(); ++i) {
    EXPECT_GE(seen[i].fraction, i > 0 && seen[i].run == seen[i - 1].run ? seen[i - 1].fraction : 0);
    EXPECT_LE(seen[i].fraction, 1);
  }
  EXPECT_GT(seen.back().fraction, 0.5) << "of a run of 0.4 s";
}

TEST(Run, Traces) {
  const std::string path = ::testing::TempDir() + "lockflight_trace_" + std::to_string(getpid());
  request r = short_run({"rma-rw"});
  r.ops = 2'000;
  r.trace = path;
  const json bench = run(r);
  EXPECT_EQ(bench["runs"][0]["violations"], 0);
  std::ifstream file(path);
  const json trace = json::parse(file);
  std::remove(path.c_str());
  std::size_t holds = 0;
  for (const json& event : trace["traceEvents"])
    holds += event["ph"] == "B" && event["name"].get<std::string>().starts_with("hold") ? 1 : 0;
  EXPECT_EQ(holds, 2'000u);

  r.trace = "/nowhere/at/all";
  EXPECT_THROW(static_cast<void>(run(r)), bad_request);
}

TEST(Host, SaysNothingPrivate) {
  request r = short_run({"spin"});
  const json host = run(r)["host"];
  for (const char* name : {"cpu_model", "cores", "processors", "kernel", "compiler", "date"})
    EXPECT_TRUE(host.contains(name)) << name;
  char name[256] = {};
  ASSERT_EQ(gethostname(name, sizeof name - 1), 0);
  for (const auto& [key, value] : host.items())
    EXPECT_TRUE(!value.is_string() || value != name) << key;
}

TEST(Clock, KeepsTime) {
  const tick_clock& clock = tick_clock::calibrated();
  const auto before = std::chrono::steady_clock::now();
  const std::uint64_t start = clock.now();
  clock.busy_until(start + clock.ticks(0.02));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - before;
  EXPECT_GE(took.count(), 0.0199);
  EXPECT_LE(clock.base().us(static_cast<double>(clock.now_ordered() - start)),
            (took.count() + 0.02) * 1e6);
}

}  // namespace
}  // namespace lockflight::bench
