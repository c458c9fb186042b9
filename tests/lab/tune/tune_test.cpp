// Tuning on simulated machines: the same each time, the setting found is really better, and
// requests that cannot be tuned are refused.
#include "lab/tune/tune.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace lockflight::tune {
namespace {

using nlohmann::json;

/// Two nodes of four ranks that all write.
request simulated(const std::string& lock) {
  request r;
  r.run.locks = {lock};
  r.run.fabric = "sim";
  r.run.profile = "piz-daint";
  r.run.procs = {8};
  r.run.levels = "2x4";
  r.run.ops = 800;
  r.run.writers = 1;
  r.aim = objectives().front();
  r.turns = 2;
  r.most = {.runs = 400, .seconds = 0};
  return r;
}

std::string refusal(const request& what) {
  try {
    validate(what);
  } catch (const bench::bad_request& e) {
    return e.what();
  }
  return "none";
}

// Where an attempt takes microseconds of the network, waiting between two of them only delays.
TEST(Tune, FindsWhatIsBetterAndTheBenchmarkAgrees) {
  request what = simulated("spin-backoff");
  what.turns = 3;
  what.parameters = {{.name = "backoff_first_ns", .values = {0, 62, 16'000}}};
  const outcome made = tune(what);
  EXPECT_EQ(made.start, (setting{{"backoff_first_ns", 1'000}}));
  EXPECT_EQ(made.axes.front().rungs, (std::vector<std::int64_t>{0, 62, 1'000, 16'000}));
  EXPECT_EQ(made.best, (setting{{"backoff_first_ns", 0}}));
  EXPECT_TRUE(made.finished);
  EXPECT_TRUE(made.last.gained);
  EXPECT_GT(made.gain(), 1.1);
  EXPECT_EQ(made.chosen(), made.best);

  bench::request again = what.run;
  const auto throughput = [&](std::int64_t value) {
    again.set = {{"backoff_first_ns", value}};
    return bench::run(again)["runs"][0]["throughput_ops_s"].get<double>();
  };
  EXPECT_GT(throughput(0), 1.1 * throughput(1'000));

  const profile::entry entry = entry_of(made);
  EXPECT_EQ(entry.parameters, made.best);
  EXPECT_EQ(entry.found.machine, "piz-daint");
  EXPECT_EQ(entry.found.procs, 8);
  EXPECT_EQ(entry.found.levels, "2x4");
  EXPECT_EQ(entry.found.writers, 1);
  EXPECT_NEAR(entry.found.gain, made.gain(), 0.001);
  const profile file({{"spin-backoff", entry}});
  EXPECT_EQ(profile::parse(file.text(), "p").values_of("spin-backoff"), entry.parameters);

  const json told = to_json(made);
  EXPECT_EQ(told["found"]["params"]["backoff_first_ns"], 0);
  EXPECT_EQ(told["found"]["median"], made.last.found.median());
  EXPECT_EQ(told["default"]["fairness_jain"], made.run_of(made.start).at("fairness_jain"));
}

TEST(Tune, TheSameSeedFindsTheSame) {
  request what = simulated("rma-rw");
  what.run.writers = 0.3;
  const json first = to_json(tune(what));
  EXPECT_EQ(first, to_json(tune(what)));
  what.run.seed = 9;
  EXPECT_NE(first, to_json(tune(what)));
}

TEST(Tune, WhatNothingBettersKeepsItsDefaults) {
  request what = simulated("rma-mcs");
  what.parameters = {{.name = "T_L2", .values = {0, 1}}};
  const outcome made = tune(what);
  EXPECT_EQ(made.best, made.start);
  EXPECT_FALSE(made.last.gained);
  EXPECT_EQ(made.gain(), 1);
  EXPECT_TRUE(entry_of(made).parameters.empty());
  EXPECT_EQ(entry_of(made).found.gain, 1);
}

TEST(Tune, StaysWithinItsRuns) {
  request what = simulated("rma-rw");
  what.most.runs = 15;
  const outcome made = tune(what);
  EXPECT_LE(made.runs, 15u);
  EXPECT_FALSE(made.finished);
}

TEST(Tune, WhatIsHeldFixedStaysSo) {
  request what = simulated("rma-rw");
  what.run.writers = 0.3;
  what.run.set = {{"T_R", 7}};
  what.most.runs = 40;
  const outcome made = tune(what);
  EXPECT_EQ(made.start.at("T_R"), 7);
  EXPECT_EQ(made.best.at("T_R"), 7);
  for (const attempt& a : made.attempts) EXPECT_NE(a.moved, "T_R");
  EXPECT_EQ(entry_of(made).parameters.at("T_R"), 7) << "the others were found with it";
}

TEST(Tune, LevelsThatTheMachineHasNotAreLeftOut) {
  request what = simulated("rma-rw");
  what.most.runs = 20;
  std::vector<std::string> names;
  for (const axis& along : tune(what).axes) names.push_back(along.name);
  EXPECT_EQ(names, (std::vector<std::string>{"T_DC", "T_R", "T_L1", "T_L2"}));
}

TEST(Tune, EveryObjectiveOfTheRuns) {
  for (const objective& aim : objectives()) {
    request what = simulated("spin-backoff");
    what.aim = aim;
    what.most.runs = 60;
    const outcome made = tune(what);
    EXPECT_EQ(made.attempts.empty(), false) << aim.name;
    for (const attempt& a : made.attempts) {
      const bool is_less = a.candidate.median() < a.best.median();
      EXPECT_TRUE(a.is != verdict::better || is_less == aim.less_is_better) << aim.name;
    }
    EXPECT_EQ(made.gain() > 1, made.last.gained) << aim.name;
    EXPECT_EQ(to_json(made).at("objective"), aim.name);
  }
}

TEST(Tune, RefusesWhatCannotBeTuned) {
  const auto says = [](const request& what, const std::string& words) {
    EXPECT_NE(refusal(what).find(words), std::string::npos) << refusal(what);
  };
  EXPECT_EQ(refusal(simulated("rma-rw")), "none");
  says(simulated("d-mcs"), "--lock 'd-mcs' (accepted: a lock with parameters to tune");
  says(simulated("cql-listing"),
       "--lock 'cql-listing' (accepted: a lock that 'lockflight locks' lists)");
  request what = simulated("rma-rw");
  what.parameters = {{.name = "TR", .values = {}}};
  says(what, "--parameter 'TR' (nearest: T_R; accepted: T_DC, T_R");
  what.parameters = {{.name = "T_R", .values = {5, 0}}};
  says(what, "--parameter 'T_R=0' (accepted: 1 to ");
  what.parameters = {{.name = "T_L3", .values = {}}};
  says(what, "(accepted: a level from 1 to 2");
  what.parameters = {{.name = "T_R", .values = {}}};
  what.run.set = {{"T_R", 5}};
  says(what, "--parameter 'T_R' (accepted: a parameter that --set does not give)");
  request mcs = simulated("rma-mcs");
  mcs.run.levels = "8";
  mcs.run.profile = "fx100";
  says(mcs, "rma-mcs has none here");
}

}  // namespace
}  // namespace lockflight::tune
