// From a claim to a verdict: runs on the simulator, few and short.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "lab/reproduce/judge.hpp"
#include "lab/reproduce/pool.hpp"
#include "lab/reproduce/reproduce.hpp"
#include "lab/reproduce/runs.hpp"
#include "tests/lab/reproduce/support.hpp"

namespace lockflight::reproduce {
namespace {

std::vector<const claim*> all_of(const paper& p) {
  std::vector<const claim*> all;
  for (const claim& c : p.claims) all.push_back(&c);
  return all;
}

/// A claim's quotient, measured here with the first seed.
double number_of_seed_1(const claim& c) {
  const auto runs = carry_out_runs({&c}, {}, {});
  const auto of = [&](const run& what) {
    return runs.at(key_of(what)).run.at("throughput_ops_s").get<double>();
  };
  return of(c.how->of.numerator) / of(*c.how->of.denominator);
}

std::string with_id(const std::string& id) {
  return replaced(one_claim, "id = \"one\"", "id = \"" + id + '"');
}

TEST(CarryOut, AClaimThatHoldsAndOneThatDoesNot) {
  const paper p = parse_claims(
      head + one_claim + replaced(with_id("far"), "value = 0.001", "value = 1000000"), "some.toml");
  const auto outcomes = carry_out(all_of(p));
  ASSERT_EQ(outcomes.size(), 2u);
  EXPECT_TRUE(outcomes[0].holds());
  EXPECT_FALSE(outcomes[1].holds());
  ASSERT_TRUE(outcomes[0].ours && outcomes[1].ours);
  EXPECT_EQ(*outcomes[0].ours, *outcomes[1].ours);
  EXPECT_GT(*outcomes[0].ours, 0.001);
}

TEST(CarryOut, AClaimCanNameALockAsPrinted) {
  for (const char* const name :
       {"alock-listing", "mcs-listing", "mcs-rw-wp-listing", "rma-rw-listing"}) {
    const paper p = parse_claims(head + replaced(one_claim, "d-mcs", name), "some.toml");
    const auto outcomes = carry_out(all_of(p));
    ASSERT_EQ(outcomes.size(), 1u);
    EXPECT_TRUE(outcomes[0].holds()) << name;
  }
}

TEST(CarryOut, TheSameRunIsCarriedOutOnce) {
  const paper p = parse_claims(head + one_claim + with_id("two"), "some.toml");
  EXPECT_EQ(carry_out_runs(all_of(p), {}, {}).size(),
            2 * seeds_of(kind::direction).size());  // numerators and denominators
}

TEST(CarryOut, HowManyAtATimeMakesNoDifference) {
  const paper p = parse_claims(head + one_claim, "some.toml");
  how alone;
  alone.at_a_time = 1;
  how together;
  together.at_a_time = 4;
  EXPECT_EQ(*carry_out(all_of(p), alone).front().ours,
            *carry_out(all_of(p), together).front().ours);
}

TEST(CarryOut, WhatNeedsSomethingMissesAndSaysWhat) {
  std::string text = one_claim;
  text = text.substr(0, text.find("[claim.measure]")) + "needs = \"a larger machine\"\n";
  const paper p = parse_claims(head + text, "some.toml");
  const auto outcomes = carry_out(all_of(p));
  EXPECT_FALSE(outcomes.front().holds());
  EXPECT_FALSE(outcomes.front().ours);
  EXPECT_NE(outcomes.front().why.find("a larger machine"), std::string::npos);
  EXPECT_TRUE(
      to_json({.claims = outcomes, .figures = {}, .beyond = {}})["claims"][0]["ours"].is_null());
}

TEST(CarryOut, TheBenchmarksRefusalNamesTheClaim) {
  const paper p =
      parse_claims(head + replaced(one_claim, "lock = \"d-mcs\"", "lock = \"dmcs\""), "some.toml");
  try {
    static_cast<void>(carry_out(all_of(p)));
    FAIL() << "was not refused";
  } catch (const bad_claims& e) {
    const std::string said = e.what();
    EXPECT_EQ(said.find("some.toml:4: claim 'one': --lock 'dmcs'"), 0u) << said;
  }
}

TEST(CarryOut, ANumberOfTheMachineIsReplaced) {
  const std::string slower = replaced(
      one_claim, "ops = 200 }", "ops = 200, machine_set = { \"nic.loopback_ns\" = 100000 } }");
  const paper p =
      parse_claims(head + one_claim + replaced(slower, "\"one\"", "\"slow\""), "some.toml");
  const auto outcomes = carry_out(all_of(p));
  EXPECT_LT(*outcomes[1].ours, *outcomes[0].ours / 10);
  try {
    static_cast<void>(carry_out(
        all_of(parse_claims(head + replaced(slower, "= 100000 }", "= 1e300 }"), "some.toml"))));
    FAIL() << "no time of a machine";
  } catch (const std::exception& e) {
    EXPECT_NE(std::string(e.what()).find("nic.loopback_ns '1e+300'"), std::string::npos)
        << e.what();
  }
}

TEST(CarryOut, OfASweepTheMostOrTheLeastCounts) {
  const std::string sweep =
      "sweep = [ { procs = 2, levels = \"1x2\" }, { procs = 8, levels = \"1x8\" } ]\n"
      "sweep_of = \"denominator\"\ntake = ";
  const paper p = parse_claims(
      head + one_claim + sweep + "\"max\"\n" + with_id("two") + sweep + "\"min\"\n", "some.toml");
  const auto outcomes = carry_out(all_of(p));
  EXPECT_GT(*outcomes[0].ours, *outcomes[1].ours);
}

TEST(CarryOut, ASpreadIsTheMostDividedByTheLeast) {
  const std::string sweep =
      "sweep = [ { procs = 2, levels = \"1x2\" }, { procs = 8, levels = \"1x8\" } ]\n"
      "sweep_of = \"denominator\"\ntake = ";
  const paper p = parse_claims(head + one_claim + sweep + "\"max\"\n" + with_id("two") + sweep +
                                   "\"min\"\n" + with_id("three") + sweep + "\"max/min\"\n",
                               "some.toml");
  const auto outcomes = carry_out(all_of(p));
  // Of three seeds each time the median, so the quotient of the medians is near and not the same.
  EXPECT_NEAR(*outcomes[2].ours, *outcomes[0].ours / *outcomes[1].ours, 0.2 * *outcomes[2].ours);
  EXPECT_GT(*outcomes[2].ours, 1);
}

TEST(CarryOut, AMeasureRelativeToItselfIsOne) {
  const std::string other = one_claim.substr(one_claim.find("numerator"));
  std::string inside = "relative_to = { " + other.substr(0, other.find('\n')) + ", " +
                       other.substr(other.find('\n') + 1);
  inside.back() = ' ';
  const paper p = parse_claims(head + one_claim + inside + "}\n", "some.toml");
  const auto outcomes = carry_out(all_of(p));
  EXPECT_DOUBLE_EQ(*outcomes[0].ours, 1);
  EXPECT_EQ(outcomes[0].spread, 0);
}

TEST(CarryOut, ADifferenceIsTheFirstRunLessTheSecond) {
  const std::string latency =
      replaced(one_claim, "metric = \"throughput\"", "metric = \"mean latency\"");
  const std::string value =
      replaced(replaced(latency, "kind = \"direction\"\nrelation = \">\"", "kind = \"value\""),
               "unit = \"x\"", "unit = \"us\"");
  const std::size_t second = value.find("denominator");
  const std::size_t first = value.find("numerator");
  const std::string above = value.substr(0, second);
  const std::string below =
      value.substr(0, first) + replaced(value.substr(second), "denominator", "numerator");
  const paper p =
      parse_claims(head + above + replaced(below, "\"one\"", "\"two\"") +
                       replaced(replaced(value, "denominator", "less"), "\"one\"", "\"three\""),
                   "some.toml");
  const auto outcomes = carry_out(all_of(p));
  ASSERT_TRUE(outcomes[0].ours && outcomes[1].ours && outcomes[2].ours);
  EXPECT_NE(*outcomes[0].ours, *outcomes[1].ours);
  EXPECT_NEAR(*outcomes[2].ours, *outcomes[0].ours - *outcomes[1].ours, 1e-9 * *outcomes[0].ours);
}

constexpr const char* a_figure = R"(
[[figure]]
figure = "figure 3"
panel = "a"
title = "Two locks"
metric = "throughput"
unit = "thousand operations/s"
x = "ranks"
x_scale = "logarithmic"
common = { workload = "ecsb", writers = 1.0, ops = 200 }
points = [ { x = 2, procs = 2, levels = "1x2" }, { x = 4, procs = 4, levels = "1x4" } ]
curves = [ { name = "queue", run = { lock = "d-mcs" } }, { name = "spin", run = { lock = "spin" } } ]
paper = [ { curve = "queue", x = 4, y = 12.5, said = "section 1" } ]
)";

TEST(CarryOut, AFigureHasAPointOfEachCurveAtEachPlace) {
  const paper p = parse_claims(head + one_claim + a_figure, "some.toml");
  ASSERT_EQ(p.figures.size(), 1u);
  const reproduction all =
      carry_out(wanted{.claims = all_of(p), .figures = {&p.figures.front()}, .curves = {}});
  ASSERT_EQ(all.figures.size(), 1u);
  const nlohmann::json made = to_json(all);
  const nlohmann::json& f = made.at("figures").at(0);
  EXPECT_EQ(f.at("figure"), "figure 3");
  ASSERT_EQ(f.at("curves").size(), 2u);
  for (const nlohmann::json& c : f["curves"]) {
    ASSERT_EQ(c.at("points").size(), 2u);
    EXPECT_EQ(c["points"][0][0], 2);
    EXPECT_EQ(c["points"][1][0], 4);
  }
  // The claim's runs are those of the figure's second point.
  const double queue = f["curves"][0]["points"][1][1];
  const double spin = f["curves"][1]["points"][1][1];
  const double first = number_of_seed_1(p.claims.front());
  EXPECT_NEAR(queue / spin, first, 1e-9 * first);
  EXPECT_EQ(f.at("paper_points").at(0).at("y"), 12.5);
}

TEST(CarryOut, ADistributionHasARunForEachCurve) {
  std::string text = replaced(a_figure, "metric = \"throughput\"",
                              "metric = \"distribution of the ranks' means\"");
  text = replaced(text, "unit = \"thousand operations/s\"", "unit = \"us\"");
  text = replaced(text, "writers = 1.0,", "writers = 1.0, procs = 4, levels = \"1x4\",");
  text.erase(text.find("points = ["), text.find("curves = [") - text.find("points = ["));
  const paper p = parse_claims(head + one_claim + text, "some.toml");
  const reproduction all =
      carry_out(wanted{.claims = {}, .figures = {&p.figures.front()}, .curves = {}});
  for (const auto& curve : all.figures.front().curves) {
    EXPECT_EQ(curve.points.size(), 4u);  // a rank each
    EXPECT_EQ(curve.points.back().second, 1);
  }
}

TEST(CarryOut, WhatTheJsonHolds) {
  const paper p = parse_claims(head + one_claim, "some.toml");
  const nlohmann::json made =
      to_json({.claims = carry_out(all_of(p)), .figures = {}, .beyond = {}});
  EXPECT_FALSE(made.contains("beyond"));
  ASSERT_EQ(made.at("claims").size(), 1u);
  const nlohmann::json& c = made["claims"][0];
  EXPECT_EQ(c.at("paper"), "some");
  EXPECT_EQ(c.at("id"), "one");
  EXPECT_EQ(c.at("what"), "queues beat spinning");
  EXPECT_EQ(c.at("paper_value"), 0.001);
  EXPECT_TRUE(c.at("ours").is_number());
  EXPECT_EQ(c.at("unit"), "x");
  EXPECT_EQ(c.at("tolerance"), 0);
  EXPECT_EQ(c.at("verdict"), "holds");
  EXPECT_EQ(c.at("calibrated_on_this"), false);
}

// A few claims of each paper that are measured in a moment; all of them hold.
TEST(CarryOut, TheQuickOnesHold) {
  std::vector<paper> papers = find_papers("all");
  std::vector<const claim*> quick;
  std::set<std::string> of;
  for (const paper& p : papers)
    for (const claim& c : p.claims)
      if (c.quick) {
        quick.push_back(&c);
        of.insert(p.name);
      }
  EXPECT_EQ(of.size(), papers.size());
  for (const outcome& o : carry_out(quick))
    EXPECT_TRUE(o.holds()) << o.of->paper << ' ' << o.of->id << ' ' << o.ours.value_or(-1) << ' '
                           << o.why;
}

}  // namespace
}  // namespace lockflight::reproduce
