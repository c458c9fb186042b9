// Claim files: reading, and errors with the line and the key.
#include <gtest/gtest.h>

#include <string>

#include "lab/reproduce/judge.hpp"
#include "lab/reproduce/runs.hpp"
#include "tests/lab/reproduce/support.hpp"

namespace lockflight::reproduce {
namespace {

std::string refusal(const std::string& text) {
  try {
    static_cast<void>(parse_claims(text, "some.toml"));
  } catch (const bad_claims& e) {
    return e.what();
  }
  return "";
}

TEST(Claims, OneIsReadAsItIsWritten) {
  const paper p = parse_claims(head + one_claim, "some.toml");
  EXPECT_EQ(p.name, "some");
  ASSERT_EQ(p.claims.size(), 1u);
  const claim& c = p.claims.front();
  EXPECT_EQ(c.at, "some.toml:4");
  EXPECT_EQ(c.how_close, kind::direction);
  EXPECT_EQ(c.relation, '>');
  EXPECT_FALSE(c.calibrated);
  EXPECT_FALSE(c.quick);
  ASSERT_TRUE(c.how && c.how->of.denominator);
  EXPECT_EQ(c.how->of.numerator.at("machine"), "piz-daint");
  EXPECT_EQ(c.how->of.denominator->at("lock"), "spin");
}

TEST(Claims, AFigureIsFoundInWhatIsSaidOfThePlace) {
  claim c;
  const auto figure = [&](const char* where) {
    c.where = where;
    return figure_of(c);
  };
  EXPECT_EQ(figure("section 5.1, figure 3"), "figure 3");
  EXPECT_EQ(figure("section 5.2.1, figure 4a"), "figure 4a");
  EXPECT_EQ(figure("section 6.2, figure 5 (d, h, l)"), "figure 5");
  EXPECT_EQ(figure("section 5.2, figures 11 and 12"), "figures 11 and 12");
  EXPECT_EQ(figure("section 6.4, table 3"), "table 3");
  EXPECT_EQ(figure("section 5.2"), "text");
}

TEST(Claims, WhatIsWrongIsNamedWithItsLineAndKey) {
  const std::string text = head + one_claim;
  const struct {
    const char* from;
    const char* to;
    const char* said;
  } cases[] = {
      {"paper = \"some\"\n", "", "some.toml:1: paper is missing"},
      {"id = \"one\"\n", "", "some.toml:4: claim.id is missing"},
      {"what = \"queues", "waht = \"queues", "some.toml:4: claim.what is missing"},
      {"calibrated = false", "calibrate = false",
       "some.toml:12: unknown key 'claim.calibrate' (accepted: "},
      {"calibrated = false", "calibrated = 1",
       "some.toml:12: claim.calibrated '1' (accepted: true or false)"},
      {"kind = \"direction\"", "kind = \"trend\"",
       "some.toml:8: claim.kind 'trend' (accepted: ratio, value, direction)"},
      {"relation = \">\"", "relation = \"=\"", "some.toml:9: claim.relation '=' (accepted: >, <)"},
      {"value = 0.001", "value = \"ten\"", "some.toml:10: claim.value 'ten' (accepted: a number)"},
      {"value = 0.001", "value = -1",
       "some.toml:10: claim.value '-1' (accepted: a number, at least"},
      {"unit = \"x\"", "unit = \"ns\"", "some.toml:11: claim.unit 'ns' (accepted: x, us, ms, s"},
      {"metric = \"throughput\"", "metric = \"speed\"",
       "some.toml:14: measure.metric 'speed' (accepted: throughput, mean latency"},
      {"procs = 4", "procs = 4.5",
       "some.toml:15: numerator.procs '4.5' (accepted: a whole number, at least 0)"},
      {"procs = 4, ", "", "some.toml:15: numerator.procs is missing"},
      {"ops = 200", "ops = 200, opps = 3",
       "some.toml:15: unknown key 'numerator.opps' (accepted: "},
      {"ops = 200", "ops = 200, role = \"rank\"",
       "some.toml:15: numerator.role 'rank' (accepted: process or operation)"},
      {"kind = \"direction\"\nrelation = \">\"", "kind = \"value\"",
       "some.toml:8: claim.kind 'value' (accepted: ratio or direction: there is a denominator)"},
      {"calibrated = false", "needs = \"time\"",
       "some.toml:12: claim.needs (accepted: needs or measure, not both)"},
      {"procs = 4", "procs = 4294967300",
       "some.toml:15: numerator.procs '4294967300' (accepted: a whole number, at most 2147483647)"},
      {"ops = 200", "ops = 0",
       "some.toml:15: numerator.ops '0' (accepted: a whole number, at least"},
      {"writers = 1.0", "writers = inf", "some.toml:15: numerator.writers 'inf"},
      {"value = 0.001", "value = inf", "some.toml:10: claim.value 'inf"},
      {"id = \"one\"", "id = \"o\\u001b[31mne\"", "some.toml:5: claim.id "},
      {"calibrated = false", "cause = \"model\"",
       "some.toml:12: claim.cause (accepted: only together with missed)"},
      {"calibrated = false", "missed = \"chance\"", "some.toml:4: claim.cause is missing"},
      {"calibrated = false", "missed = \"chance\"\ncause = \"luck\"",
       "some.toml:13: claim.cause 'luck' (accepted: model, lock, workload, paper)"},
      {"metric = \"throughput\"",
       "metric = \"throughput\"\nrelative_to = { numerator = { lock = "
       "\"spin\", workload = \"ecsb\", procs = 4 } }",
       "some.toml:15: measure.relative_to "},
      {"metric = \"throughput\"",
       "metric = \"throughput\"\nless = { workload = \"ecsb\", procs = 4 }",
       "some.toml:15: measure.less "},
      {"[claim.measure]", "[claim.measure", "some.toml:13: "},
  };
  ASSERT_EQ(refusal(text), "");
  for (const auto& c : cases) {
    const std::string said = refusal(replaced(text, c.from, c.to));
    EXPECT_EQ(said.substr(0, std::string(c.said).size()), c.said) << said;
  }
  const std::string twice = refusal(text + one_claim);
  EXPECT_NE(twice.find("claim.id 'one'"), std::string::npos) << twice;
}

TEST(Claims, ADifferenceHasTheUnitOfItsMetricAndNoSweep) {
  const std::string difference =
      replaced(replaced(replaced(one_claim, "denominator", "less"), "metric = \"throughput\"",
                        "metric = \"mean latency\""),
               "unit = \"x\"", "unit = \"us\"");
  const std::string text = head + difference;
  ASSERT_EQ(refusal(text), "");
  EXPECT_EQ(refusal(replaced(text, "unit = \"us\"", "unit = \"x\"")),
            "some.toml:11: claim.unit 'x' (accepted: us, ms, s)");
  const std::string ratio =
      replaced(text, "kind = \"direction\"\nrelation = \">\"", "kind = \"ratio\"");
  EXPECT_NE(refusal(ratio).find("claim.kind 'ratio' (accepted: value or direction"),
            std::string::npos);
  const std::string of_quotients =
      replaced(replaced(ratio, "metric = \"mean latency\"", "metric = \"(p75 - p25) / p50\""),
               "unit = \"us\"", "unit = \"x\"");
  EXPECT_NE(refusal(of_quotients).find("claim.kind 'ratio'"), std::string::npos);
  const std::string of_rates =
      replaced(text, "metric = \"mean latency\"", "metric = \"throughput\"");
  EXPECT_NE(refusal(of_rates).find("(accepted: none without a denominator)"), std::string::npos);
  const std::string of_two = replaced(text, "metric = \"mean latency\"", "metric = \"p75 / p25\"");
  EXPECT_NE(refusal(of_two).find("measure.metric 'p75 / p25'"), std::string::npos);
  const std::string swept =
      text + "sweep = [ { procs = 2 } ]\nsweep_of = \"both\"\ntake = \"max\"\n";
  EXPECT_NE(refusal(swept).find("measure.less "), std::string::npos);
  const std::string other = one_claim.substr(one_claim.find("numerator"));
  const std::string gap = text + "[claim.measure.relative_to]\n" + other;
  EXPECT_NE(refusal(gap).find("measure.relative_to "), std::string::npos);
}

TEST(Claims, ARunSaysWhetherProcessesOrOperationsWrite) {
  const auto by = [](const std::string& more) {
    const paper p = parse_claims(head + replaced(one_claim, "ops = 200", "ops = 200" + more), "t");
    return request_of(p.claims.front().how->of.numerator).by;
  };
  EXPECT_EQ(by(""), bench::role::operation);
  EXPECT_EQ(by(", role = \"operation\""), bench::role::operation);
  EXPECT_EQ(by(", role = \"process\""), bench::role::process);
}

TEST(Claims, WhatIsWrongInAFigureIsNamedWithItsLineAndKey) {
  const std::string figure =
      "[[figure]]\nfigure = \"figure 3\"\ntitle = \"t\"\nmetric = \"throughput\"\n"
      "unit = \"operations/s\"\nx = \"ranks\"\ncommon = { workload = \"ecsb\", ops = 20 }\n"
      "points = [ { x = 2, procs = 2 } ]\ncurves = [ { name = \"a\", run = { lock = \"spin\" } } "
      "]\n"
      "paper = [ { curve = \"a\", x = 2, y = 1, said = \"section 1\" } ]\n";
  const std::string text = head + one_claim + figure;
  ASSERT_EQ(refusal(text), "");
  const struct {
    const char* from;
    const char* to;
    const char* said;
  } cases[] = {
      {"unit = \"operations/s\"", "unit = \"us\"",
       "some.toml:21: figure.unit 'us' (accepted: a unit of the metric)"},
      {"figure = \"figure 3\"", "figure = \"fig. 3\"",
       "some.toml:18: figure.figure 'fig. 3' (accepted: figure and its number, as figure 3)"},
      {"points = [ { x = 2, procs = 2 } ]\n", "", "some.toml:17: figure.points is missing"},
      {"{ x = 2, procs = 2 }", "{ procs = 2 }", "some.toml:24: points.x is missing"},
      {"{ x = 2, procs = 2 }", "{ x = nan, procs = 2 }", "some.toml:24: points.x 'nan"},
      {"curves = [ ", "curves = [ { name = \"a\", run = { lock = \"d-mcs\" } }, ",
       "some.toml:25: curves.name 'a' (accepted: one that no other curve of the figure has)"},
      {"{ x = 2, procs = 2 }", "{ x = true, procs = 2 }",
       "some.toml:24: points.x 'true' (accepted: a number or a string)"},
      {"{ x = 2, procs = 2 }", "{ x = 2, prox = 2 }",
       "some.toml:24: unknown key 'points.prox' (accepted: "},
      {"{ x = 2, procs = 2 }", "{ x = 2 }", "some.toml:25: run.procs is missing"},
      {"curve = \"a\"", "curve = \"b\"",
       "some.toml:26: paper.curve 'b' (accepted: the name of one of the figure's curves)"},
      {"x = \"ranks\"", "x = \"ranks\"\ny_scale = \"log\"",
       "some.toml:23: figure.y_scale 'log' (accepted: linear, logarithmic)"},
      {"points = [ { x = 2, procs = 2 } ]",
       "x_scale = \"logarithmic\"\npoints = [ { x = 0, procs = 2 } ]",
       "some.toml:25: points.x '0' (accepted: a number above 0 on a logarithmic axis)"},
      {"metric = \"throughput\"\nunit = \"operations/s\"",
       "metric = \"distribution of latencies\"\nunit = \"us\"", "some.toml:24: figure.points "},
  };
  for (const auto& c : cases) {
    const std::string said = refusal(replaced(text, c.from, c.to));
    EXPECT_EQ(said.substr(0, std::string(c.said).size()), c.said) << said;
  }
  const std::string zero = replaced(text, "y = 1,", "y = 0,");
  EXPECT_EQ(refusal(zero), "");
  EXPECT_EQ(refusal(replaced(zero, "x = \"ranks\"", "x = \"ranks\"\ny_scale = \"logarithmic\"")),
            "some.toml:27: paper.y '0' (accepted: a number above 0 on a logarithmic axis)");
  EXPECT_EQ(
      refusal(text + figure),
      "some.toml:28: figure.figure 'figure 3' (accepted: a figure and panel that the file has "
      "once)");
}

TEST(Claims, ASweepIsLaidOverTheRunsThatItIsOf) {
  const std::string sweep =
      "sweep = [ { procs = 8, levels = \"2x4\" }, { ops = 100 } ]\ntake = \"max\"\nsweep_of = ";
  const auto runs = [&](const std::string& of) {
    const paper p = parse_claims(head + one_claim + sweep + '"' + of + '"', "some.toml");
    return runs_of(p.claims.front());
  };
  std::vector<run> all = runs("both");
  ASSERT_EQ(all.size(), 4 * seeds_of(kind::direction).size());
  EXPECT_FALSE(all[0].contains("seed"));
  EXPECT_EQ(all[4].at("seed"), 2);
  EXPECT_EQ(all[0].at("procs"), 8);
  EXPECT_EQ(all[1].at("procs"), 8);
  EXPECT_EQ(all[1].at("lock"), "spin");
  EXPECT_EQ(all[3].at("ops"), 100);
  all = runs("numerator");
  EXPECT_EQ(all[0].at("procs"), 8);
  EXPECT_EQ(all[1].at("procs"), 4);
}

TEST(Claims, ThePapersAreThere) {
  EXPECT_EQ(names_of_papers(),
            (std::vector<std::string>{"rma", "alock", "fx100", "dlm", "scc", "dslr", "shiftlock",
                                      "declock", "farlock"}));
  std::size_t claims = 0;
  std::size_t calibrated = 0;
  for (const paper& p : find_papers("all"))
    for (const claim& c : p.claims) {
      ++claims;
      calibrated += c.calibrated ? 1 : 0;
    }
  EXPECT_GT(claims, 280u);
  // Otherwise the machines would only repeat what they were calibrated to.
  EXPECT_LE(3 * calibrated, claims);
  EXPECT_THROW(static_cast<void>(find_papers("nowhere.toml")), bad_claims);
}

TEST(Claims, TheBenchmarkAcceptsEveryRunOfThem) {
  constexpr int large = 100'000;  // takes seconds to lay out
  for (const paper& p : find_papers("all"))
    for (const claim& c : p.claims)
      for (const run& r : runs_of(c))
        if (r.at("procs") < large) {
          EXPECT_NO_THROW(bench::validate(request_of(r))) << c.paper << ' ' << c.id << ' ' << r;
        }
  for (const paper& p : find_papers("all"))
    for (const figure& f : p.figures)
      for (const figure::curve& c : f.curves)
        for (const run& r : c.runs)
          EXPECT_NO_THROW(bench::validate(request_of(r))) << f.at << ' ' << c.name << ' ' << r;
}

}  // namespace
}  // namespace lockflight::reproduce
