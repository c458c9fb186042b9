// The table of a bench when runs differ in unusual ways, and when a lock is broken.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "lab/program/bench_table.hpp"
#include "tool/table.hpp"
#include "tool/text.hpp"
#include "tool/values.hpp"

namespace lockflight::lab {
namespace {

using nlohmann::json;

json latency(double mean) {
  return {{"mean", mean}, {"p25", mean},  {"p50", mean}, {"p75", mean},
          {"p99", mean},  {"p999", mean}, {"max", mean}};
}

json run_of(const char* lock, int procs) {
  return {
      {"lock", lock},
      {"kind", "rw"},
      {"fabric", "shm"},
      {"machine", nullptr},
      {"workload", "ecsb"},
      {"procs", procs},
      {"levels", std::to_string(procs)},
      {"writers", 0.002},
      {"locality", nullptr},
      {"params", json::object()},
      {"ops", 1000},
      {"elapsed_s", 1.0},
      {"throughput_ops_s", 1000.0},
      {"latency_us", latency(12.5)},
      {"read", {{"ops", 0}, {"latency_us", nullptr}}},
      {"write", {{"ops", 0}, {"latency_us", nullptr}}},
      {"fabric_ops",
       {{"nic",
         {{"put", 1000},
          {"get", 0},
          {"add", 500},
          {"fetch_add", 0},
          {"swap", 0},
          {"cas", 0},
          {"flush", 9000},
          {"loopback", 700}}},
        {"cpu", {{"load", 1}, {"store", 1}, {"rmw", 1}}},
        {"messages", 250}}},
      {"handoffs", {100, 400}},
      {"fairness_jain", 0.98765},
      {"max_wait_us", 99.0},
      {"violations", 0},
  };
}

json bench_of(const std::vector<json>& runs) {
  return {{"lockflight", "0"}, {"host", json::object()}, {"runs", runs}};
}

std::string printed(const json& bench) {
  testing::internal::CaptureStdout();
  console out;
  print_bench(out, bench);
  out.finish();
  return testing::internal::GetCapturedStdout();
}

TEST(bench_table, counts_operations_and_messages_but_not_flushes) {
  const std::string out = printed(bench_of({run_of("d-mcs", 4)}));
  EXPECT_NE(out.find("1.75"), std::string::npos) << out;       // (1000 + 500 + 250) / 1000
  EXPECT_NE(out.find("0.10/0.40"), std::string::npos) << out;  // handoffs of both levels
  EXPECT_NE(out.find("0.988"), std::string::npos) << out;
}

TEST(bench_table, says_above_what_all_runs_share) {
  json with_levels = run_of("d-mcs", 4);
  with_levels["levels"] = "2x2";
  EXPECT_EQ(printed(bench_of({with_levels})).rfind("ecsb on shm, procs 4, levels 2x2, F_W 0.2 %"),
            0u);
  json other = run_of("d-mcs", 4);
  other["workload"] = "sob";
  const std::string out = printed(bench_of({run_of("d-mcs", 4), other}));
  EXPECT_EQ(out.rfind("on shm, procs 4, F_W 0.2 %\n", 0), 0u) << out;
  EXPECT_NE(out.find("workload"), std::string::npos) << out;
}

TEST(bench_table, names_a_share_of_writers_only_beside_readers) {
  json mutex = run_of("d-mcs", 4);
  mutex["kind"] = "mutex";
  EXPECT_EQ(printed(bench_of({mutex})).find("F_W"), std::string::npos);
  EXPECT_NE(printed(bench_of({mutex, run_of("rma-rw", 4)})).find(", F_W 0.2 %"), std::string::npos);
}

TEST(bench_table, says_nothing_of_locks_where_there_is_none) {
  json run = run_of("get", 4);
  run["kind"] = "none";
  run["workload"] = "primitive";
  const std::string out = printed(bench_of({run}));
  EXPECT_NE(out.find("Latency is that of one operation"), std::string::npos) << out;
  for (const char* const of_locks : {"lock", "F_W", "handoffs", "fairness", "violations"})
    EXPECT_EQ(out.find(of_locks), std::string::npos) << out;
}

TEST(bench_table, says_what_rank_0_is_timed_for_in_rounds) {
  for (const auto& [workload, timed] :
       {std::pair("cascade", "rank 0's, from its release until it has the lock again; net/op"),
        std::pair("dht-writer", "rank 0's, to write and release while all others wait; net/op")}) {
    json run = run_of("d-mcs", 4);
    run["workload"] = workload;
    const std::string out = printed(bench_of({run}));
    EXPECT_NE(out.find(timed), std::string::npos) << out;
    EXPECT_EQ(out.find("one acquire"), std::string::npos) << out;
  }
}

TEST(bench_table, shows_parameters_where_they_differ_for_one_lock) {
  json tuned = run_of("rma-rw", 4);
  tuned["params"] = {{"T_R", 64}};
  EXPECT_NE(printed(bench_of({run_of("rma-rw", 4), tuned})).find("T_R=64"), std::string::npos);
  EXPECT_EQ(printed(bench_of({run_of("d-mcs", 4), tuned})).find("T_R=64"), std::string::npos);
}

TEST(bench_table, stands_runs_without_operations) {
  json empty = run_of("d-mcs", 4);
  for (const char* field : {"latency_us", "fairness_jain", "max_wait_us"}) empty[field] = nullptr;
  empty["ops"] = 0;
  empty["throughput_ops_s"] = 0;
  EXPECT_NE(printed(bench_of({empty})).find("–"), std::string::npos);
  EXPECT_EQ(printed(bench_of({})), "no runs\n");
}

TEST(bench_table, says_which_ranks_were_lost) {
  json one = run_of("dlm-server", 4);
  one["lost_ranks"] = {3};
  json two = run_of("dlm-server", 8);
  two["lost_ranks"] = {1, 5};
  const std::string out = printed(bench_of({run_of("d-mcs", 4), one, two}));
  EXPECT_NE(out.find("dlm-server with 4 ranks: rank 3 was lost, and the others went on: its "
                     "operations are not counted.\n"),
            std::string::npos)
      << out;
  EXPECT_NE(out.find("dlm-server with 8 ranks: 2 ranks (1 and 5) were lost, and the others went "
                     "on: their operations are not counted.\n"),
            std::string::npos)
      << out;
  EXPECT_EQ(printed(bench_of({run_of("d-mcs", 4)})).find("lost"), std::string::npos);
}

TEST(bench_table, names_the_locks_that_were_broken) {
  json broken = run_of("spin", 4);
  broken["violations"] = 3;
  EXPECT_EQ(violations_in(bench_of({run_of("d-mcs", 4)})), "");
  EXPECT_EQ(violations_in(bench_of({broken, run_of("d-mcs", 4), broken})),
            "mutual exclusion was broken in spin (6 times)");
}

TEST(text, counts_columns_not_bytes) {
  EXPECT_EQ(columns_of("mean µs"), 7);
  EXPECT_EQ(columns_of("├─ …"), 4);
}

TEST(text, wraps_at_spaces) {
  EXPECT_EQ(wrapped("one two three", 7, 0), "one two\nthree\n");
  EXPECT_EQ(wrapped("one two three", 9, 2), "  one two\n  three\n");
  EXPECT_EQ(wrapped("unbreakable", 4, 0), "unbreakable\n");
}

TEST(text, joins_neighbours_to_ranges) {
  EXPECT_EQ(ranges({}), "");
  EXPECT_EQ(ranges({0, 1, 2, 5, 7, 8}), "0-2, 5, 7-8");
}

TEST(values, are_read_strictly) {
  EXPECT_EQ(whole_number("--n", "18446744073709551615", 0, UINT64_MAX), UINT64_MAX);
  for (const char* const bad : {"", " 1", "1 ", "+1", "-1", "0x1", "1e3", "1.0", "11"})
    EXPECT_THROW(static_cast<void>(whole_number("--n", bad, 0, 10)), std::invalid_argument) << bad;
  EXPECT_EQ(whole_numbers("--n", "4,2,4", 1, 9), (std::vector{4, 2}));
  EXPECT_DOUBLE_EQ(real_number("--x", "2e-3", 0, 1), 0.002);
  EXPECT_EQ(assignment("--set", "a=-5"), (std::pair<std::string, std::int64_t>("a", -5)));
  EXPECT_THROW(static_cast<void>(assignment("--set", "a=5=6")), std::invalid_argument);
}

}  // namespace
}  // namespace lockflight::lab
