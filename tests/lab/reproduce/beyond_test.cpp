// Beyond the papers: the runs, the ends of curves, the fastest locks.
#include "lab/reproduce/beyond.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "lab/reproduce/page.hpp"
#include "lab/reproduce/pool.hpp"
#include "lab/reproduce/runs.hpp"
#include "lab/sim/machine.hpp"

namespace lockflight::reproduce {
namespace {

using nlohmann::json;

run run_of(int procs, std::uint64_t most_events = 0) {
  return {{"machine", "piz-daint"}, {"workload", "sob"},
          {"lock", "spin"},         {"procs", procs},
          {"writers", 1.0},         {"ops", 20'000},
          {"warm_up", false},       {"most_events", most_events}};
}

curve curve_of(std::vector<run> runs) { return {"piz-daint", "sob", 1, "spin", std::move(runs)}; }

json point(int procs, double ops_s) {
  return {{"procs", procs},
          {"levels", "1x4"},
          {"ops", 100},
          {"elapsed_s", 1.0},
          {"throughput_ops_s", ops_s},
          {"latency_us", {{"mean", 1.0}}},
          {"fairness_jain", 1.0},
          {"violations", 0}};
}

measured_curve measured_as(const std::string& lock, std::vector<json> points,
                           const std::string& ends = "") {
  curve of = curve_of({run_of(4), run_of(16), run_of(64)});
  of.lock = lock;
  return {.of = of, .points = std::move(points), .ends = ends};
}

TEST(Beyond, EveryLockIsRunOnEveryMachine) {
  std::set<std::string> locks;
  for (const bench::lock_row& row : bench::lock_table())
    if (!row.about.defers && !row.about.needs_native_memory) locks.emplace(row.about.name);
  ASSERT_GE(locks.size(), 15u);
  const std::vector<curve> all = curves_beyond(false);
  for (const std::string& machine : sim::names_of_machines()) {
    std::set<std::string> writing;
    std::set<std::string> reading;
    for (const curve& c : all)
      if (c.machine == machine && !is_k_computer(c))
        (c.writers == 1 ? writing : reading).insert(c.lock);
    EXPECT_EQ(writing, locks) << machine;
    EXPECT_TRUE(reading.contains("rma-rw")) << machine;
    EXPECT_FALSE(reading.contains("d-mcs")) << machine;
  }
  EXPECT_TRUE(is_k_computer(all.back()));
  EXPECT_EQ(all.back().runs.front().at("procs"), 663'552);
}

TEST(Beyond, RanksArePowersOfFourAndAllThatTheMachineHas) {
  for (const curve& c : curves_beyond(false)) {
    if (is_k_computer(c)) continue;
    int expected = 1;
    for (std::size_t i = 0; i + 1 < c.runs.size(); ++i, expected *= 4)
      EXPECT_EQ(c.runs[i].at("procs"), expected) << c.machine;
    // The words of these tell no more ranks apart.
    const bool has_ring = c.lock == "cql" || c.lock == "declock";
    const std::uint64_t most_of_lock = c.lock == "dslr" ? 32'768 : has_ring ? 65'535 : 65'536;
    const auto most = std::min(sim::find_machine(c.machine).ranks(), most_of_lock);
    EXPECT_EQ(c.runs.back().at("procs"), most) << c.machine;
    for (const run& r : c.runs)
      EXPECT_EQ(r.at("ops").get<int>() % r.at("procs").get<int>(), 0) << "all do as much";
  }
}

TEST(Beyond, TheBenchmarkAcceptsEveryRunOfThem) {
  constexpr int large = 10'000;  // takes a while to lay out
  for (const bool quick : {false, true})
    for (const curve& c : curves_beyond(quick))
      for (const run& r : c.runs)
        if (r.at("procs") < large) {
          EXPECT_NO_THROW(bench::validate(request_of(r))) << r;
        }
}

TEST(Beyond, QuickIsSmall) {
  ASSERT_FALSE(curves_beyond(true).empty());
  for (const curve& c : curves_beyond(true))
    for (const run& r : c.runs) EXPECT_LE(r.at("procs"), 16) << r;
}

TEST(Beyond, ACurveEndsWhereARunTakesTooManyEvents) {
  const curve c = curve_of({run_of(2), run_of(16, 1000), run_of(64)});
  const auto results = carry_out_runs({}, {{"spin", "spin", c.runs}}, {});
  EXPECT_EQ(results.size(), 2u) << "what comes after the end is not run";

  const reproduction made = carry_out(wanted{.claims = {}, .figures = {}, .curves = {c}});
  ASSERT_EQ(made.beyond.size(), 1u);
  const measured_curve& ended = made.beyond.front();
  EXPECT_EQ(ended.points.size(), 1u);
  EXPECT_EQ(ended.ends, "more than 1000 events");
  EXPECT_EQ(ended.ends_at(), 16);
  EXPECT_TRUE(made.holds()) << "that is no fault of the lock";
  const auto ends = [&](bool with_reason) {
    return ends_of(made.beyond, "piz-daint", 1, with_reason);
  };
  EXPECT_EQ(ends(true), std::vector<std::string>{"spin 16 (more than 1000 events)"});
  EXPECT_EQ(ends(false), std::vector<std::string>{"spin 16"});

  const json rows = to_json(made).at("beyond");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_GT(rows[0].at("throughput_ops_s"), 0);
  EXPECT_GT(rows[0].at("latency_us").at("mean"), 0);
  EXPECT_EQ(rows[1].at("procs"), 16);
  EXPECT_TRUE(rows[1].at("throughput_ops_s").is_null());
  EXPECT_EQ(rows[1].at("why"), "more than 1000 events");
}

TEST(Beyond, WhatHasNotTheMemoryIsLeftOutAndSaysSo) {
  run large = run_of(1 << 20);
  large["machine"] = "fx100";
  large["workload"] = "table";
  large["locks"] = 100'000;
  const reproduction made =
      carry_out(wanted{.claims = {}, .figures = {}, .curves = {curve_of({run_of(2), large})}});
  EXPECT_EQ(made.beyond.front().points.size(), 1u);
  EXPECT_NE(made.beyond.front().ends.find("what fits into memory"), std::string::npos)
      << made.beyond.front().ends;
}

TEST(Beyond, ACurveEndsWhereARunTakesTooMuchMemory) {
  run large = run_of(64);
  large["most_bytes"] = 64 << 10;
  const reproduction made =
      carry_out(wanted{.claims = {}, .figures = {}, .curves = {curve_of({run_of(2), large})}});
  EXPECT_EQ(made.beyond.front().points.size(), 1u);
  EXPECT_NE(made.beyond.front().ends.find("GiB, more than"), std::string::npos)
      << made.beyond.front().ends;
}

TEST(Beyond, ManyAtATimeGiveTheSame) {
  const std::vector<curve> two{curve_of({run_of(2), run_of(8)}), curve_of({run_of(4)})};
  how alone;
  alone.at_a_time = 1;
  how together;
  together.at_a_time = 4;
  EXPECT_EQ(to_json(carry_out(wanted{.claims = {}, .figures = {}, .curves = two}, alone)),
            to_json(carry_out(wanted{.claims = {}, .figures = {}, .curves = two}, together)));
}

TEST(Beyond, ABrokenLockDoesNotHold) {
  measured_curve c = measured_as("spin", {point(4, 10)});
  EXPECT_TRUE((reproduction{.claims = {}, .figures = {}, .beyond = {c}}.holds()));
  c.points.front()["violations"] = 1;
  EXPECT_FALSE((reproduction{.claims = {}, .figures = {}, .beyond = {c}}.holds()));
}

TEST(Beyond, WhoIsFastestWhere) {
  const std::vector<measured_curve> curves{
      measured_as("spin", {point(4, 90), point(16, 20)}, "more than 7 events"),
      measured_as("d-mcs", {point(4, 40), point(16, 30), point(64, 20)}),
      measured_as("dq", {point(4, 5), point(16, 10), point(64, 5)})};
  const auto all = fastest_of(curves);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all.front().said(), "spin 4, d-mcs 16 to 64");
  EXPECT_EQ(all.front().most, 64);
  EXPECT_EQ(all.front().ops_s_at_most, 20);
  EXPECT_EQ(all.front().times_slowest, 4);
}

TEST(Beyond, ThePageHasAChartForEachMachineAndShareOfWriters) {
  measured_curve few = measured_as("rma-rw", {point(4, 7)});
  few.of.writers = few_writers;
  const reproduction made{
      .claims = {},
      .figures = {},
      .beyond = {measured_as("spin", {point(4, 90)}, "more than 7 events"), few}};
  const std::string page = page_of_beyond(made, {.index = "all.html", .pages = {}});
  for (const char* const part :
       {"data-machine=\"piz-daint\" data-writers=\"1\"", "data-writers=\"0.002\"",
        "Ends before: spin 16 (more than 7 events).", "piz-daint: 0.2 % write",
        "href=\"all.html\""})
    EXPECT_NE(page.find(part), std::string::npos) << part;
}

TEST(Beyond, TheKComputerIsASentence) {
  curve k = curves_beyond(false).back();
  json r = point(663'552, 1e6);
  r["ops"] = 663'552;
  r["elapsed_s"] = 0.36;
  EXPECT_EQ(said_of_k_computer({{.of = k, .points = {r}, .ends = ""}}),
            "The whole K computer: 663552 ranks each lock_all and unlock_all with mcs-rw-rp in "
            "0.36 s.");
  EXPECT_EQ(said_of_k_computer({{.of = k, .points = {}, .ends = "no room"}}),
            "The whole K computer was not run: no room");
  EXPECT_EQ(said_of_k_computer({}), "");
}

}  // namespace
}  // namespace lockflight::reproduce
