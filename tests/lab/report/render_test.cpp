// The content of the page, as text; the browser test checks its appearance.
#include <gtest/gtest.h>

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>

#include "lab/report/report.hpp"
#include "lab/report/text.hpp"
#include "tests/lab/report/sample.hpp"

namespace lockflight::report {
namespace {

using nlohmann::json;

const std::string hostile =
    "</script><script>alert(1)</script><!--<b title='x' \"y\">&amp;{{title}}";

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

std::string rendered(const json& bench) { return render_html(bench, {"flight", "flight-rw"}); }

json embedded(const std::string& page) {
  const std::string open = "<script type=\"application/json\" id=\"bench\">";
  const std::size_t start = page.find(open) + open.size();
  return json::parse(page.substr(start, page.find("</script>", start) - start));
}

TEST(Render, TheDocumentComesBackWhole) {
  const json bench = sample();
  EXPECT_EQ(embedded(rendered(bench)), bench);
}

TEST(Render, TheSameDocumentGivesTheSamePage) { EXPECT_EQ(rendered(sample()), rendered(sample())); }

TEST(Render, RefusesWhatValidateRefuses) { EXPECT_THROW(rendered(json::object()), bad_input); }

TEST(Render, IsCompleteInItself) {
  const std::string page = rendered(sample());
  EXPECT_EQ(page.rfind("<!DOCTYPE html>", 0), 0U);
  EXPECT_TRUE(has(page, "default-src 'none'"));
  EXPECT_TRUE(has(page, "Chart.js v3"));
  EXPECT_TRUE(has(page, "Permission is hereby granted, free of charge"));
  for (const char* outside : {"<script src", "<link rel=\"stylesheet\"", "@import", "<img",
                              "fetch(", "XMLHttpRequest", "url(http"}) {
    EXPECT_FALSE(has(page, outside)) << outside;
  }
}

TEST(Render, TextFromTheDocumentNeverBecomesMarkup) {
  const std::string plain_page = rendered(sample());
  json bench = sample();
  bench["lockflight"] = hostile;
  bench["host"][hostile] = hostile;
  for (const char* field : {"lock", "workload", "fabric", "machine", "levels"}) {
    bench["runs"][0][field] = hostile;
  }
  bench["runs"][0]["params"][hostile] = hostile;
  bench["runs"][0]["violations"] = 1;
  const std::string page = rendered(bench);
  EXPECT_FALSE(has(page, "alert(1)</script>"));
  EXPECT_FALSE(has(page, "<b title"));
  EXPECT_EQ(occurrences(page, "<script"), occurrences(plain_page, "<script"));
  EXPECT_EQ(occurrences(page, "</script"), occurrences(plain_page, "</script"));
  EXPECT_EQ(occurrences(page, "<!--"), occurrences(plain_page, "<!--"));
  EXPECT_TRUE(has(page, "&lt;/script&gt;&lt;script&gt;alert(1)"));
  // Braces in a value are text, not a slot of the template.
  EXPECT_TRUE(has(page, "&amp;amp;{{title}}"));
  EXPECT_EQ(embedded(page), bench);
}

TEST(Render, BrokenTextDoesNotStopThePage) {
  json bench = sample();
  bench["host"]["name"] = "\xff";
  EXPECT_NO_THROW(rendered(bench));
}

TEST(Render, TheVerdictIsGreenWithoutViolations) {
  const std::string page = rendered(sample());
  EXPECT_TRUE(has(page, "class=\"verdict good\" role=\"status\""));
  EXPECT_TRUE(has(page, "<strong>0 violations.</strong>"));
  EXPECT_FALSE(has(page, "<tr class=\"broken\">"));
}

TEST(Render, TheVerdictIsRedAndNamesTheLocks) {
  json bench = sample();
  bench["runs"][3]["violations"] = 2;
  bench["runs"][12]["violations"] = 5;
  const std::string page = rendered(bench);
  EXPECT_TRUE(has(page, "class=\"verdict bad\" role=\"alert\""));
  EXPECT_TRUE(has(page, "<strong>7 violations.</strong>"));
  EXPECT_TRUE(has(page, "flight-rw (2) and rma-rw (5)"));
  EXPECT_EQ(occurrences(page, "<tr class=\"broken\">"), 2U);
}

TEST(Render, RanksThatWereLostAreNamed) {
  EXPECT_FALSE(has(rendered(sample()), "Ranks were lost."));
  json bench = sample();
  bench["runs"][3]["lost_ranks"] = {2};
  const std::string page = rendered(bench);
  EXPECT_TRUE(has(page, "<strong>Ranks were lost.</strong>"));
  EXPECT_TRUE(
      has(page, "rank 2 was lost, and the others went on: its operations are not counted."));
}

TEST(Render, HostsAreNamedAndWhatWasNotWitnessedAcrossThem) {
  EXPECT_FALSE(has(rendered(sample()), "Not checked across hosts."));
  json bench = sample();
  bench["runs"][2]["witnessed"] = nullptr;  // as if the field were missing
  bench["runs"][3]["witnessed"] = "within hosts";
  const json host{
      {"name", "host7"}, {"ranks", {2, 3}}, {"cores", 1}, {"cpu_model", "a <slow> one"}};
  bench["hosts"] = json::array({host});
  const std::string page = rendered(bench);
  EXPECT_TRUE(has(page, "<strong>Not checked across hosts.</strong>"));
  EXPECT_TRUE(has(page, "<dt>host7</dt><dd>a &lt;slow&gt; one, ranks 2 and 3, 1\u00a0core</dd>"));
}

TEST(Render, ADocumentWithoutRunsSaysSo) {
  json bench = sample();
  bench["runs"] = json::array();
  EXPECT_TRUE(has(rendered(bench), "<strong>No runs.</strong>"));
}

TEST(Render, TheHeadTellsWhatWasRunAndWhere) {
  const std::string page = rendered(sample());
  EXPECT_TRUE(has(page, "on 4 to 1024 ranks over sim (cray-xc30); workloads ecsb and warb"));
  EXPECT_TRUE(has(page, "<dt>date</dt><dd>2025-01-31T12:00:00Z</dd>"));
  EXPECT_TRUE(has(page, "<dt>simulated on: build type</dt><dd>Release</dd>"));
  EXPECT_TRUE(has(page, "version 0.1.0"));
}

TEST(Render, TheFactsOfASimulationSayWhichMachineIsSimulatedAndOnWhich) {
  json bench = sample();
  bench["host"]["clock_read_ns"] = 15.5;
  std::string page = rendered(bench);
  EXPECT_TRUE(has(page, "<dt>simulated machine</dt><dd>cray-xc30</dd>"));
  EXPECT_TRUE(has(page, "<dt>simulated on: cpu model</dt>"));
  EXPECT_FALSE(has(page, "<dt>cpu model</dt>"));
  EXPECT_FALSE(has(page, "clock read ns"));
  // With runs on this host beside those, the facts are about it.
  bench["runs"][0]["fabric"] = "shm";
  bench["runs"][0]["machine"] = nullptr;
  page = rendered(bench);
  EXPECT_TRUE(has(page, "<dt>simulated machine</dt><dd>cray-xc30</dd>"));
  EXPECT_TRUE(has(page, "<dt>cpu model</dt>"));
  EXPECT_TRUE(has(page, "<dt>clock read ns</dt>"));
}

TEST(Render, RunsWithoutALockProveNothingAboutLocks) {
  json bench = sample();
  json& runs = bench["runs"];
  runs[0].update({{"lock", "stencil"}, {"workload", "stencil"}, {"kind", "none"}});
  EXPECT_TRUE(has(rendered(bench), "Mutual exclusion held in all 79 runs."));
  EXPECT_TRUE(has(rendered(bench), "8\u00a0locks and a stencil without a lock on"));
  runs.erase(runs.begin() + 1, runs.end());
  const std::string page = rendered(bench);
  EXPECT_TRUE(has(page, "<strong>No lock was run.</strong>"));
  EXPECT_TRUE(has(page, ">Measured</button>"));
}

TEST(Render, ARunWithoutOperationsHasDashes) {
  json bench = sample();
  bench["runs"].erase(bench["runs"].begin() + 1, bench["runs"].end());
  json& run = bench["runs"][0];
  run["ops"] = 0;
  run["throughput_ops_s"] = 0;
  run["latency_us"] = nullptr;
  run["fairness_jain"] = nullptr;
  run["max_wait_us"] = nullptr;
  std::string page = rendered(bench);
  EXPECT_GE(occurrences(page, "data-key=\"\">–</td>"), 8U);
  // Then the page claims nothing about mutual exclusion.
  EXPECT_TRUE(has(page, "<strong>No operation ended.</strong>"));
  EXPECT_FALSE(has(page, "0 violations"));

  bench["runs"].push_back(sample()["runs"][1]);
  page = rendered(bench);
  EXPECT_TRUE(has(page, "held in the one run. 1\u00a0run ended before an operation did."));
}

TEST(Render, TheTableHasTheSettingsOfTheWorkload) {
  json bench = sample();
  bench["runs"][0]["locks"] = 3;
  bench["runs"][0]["hold_us"] = 20.5;
  bench["runs"][1]["bytes"] = 512;
  const std::string page = rendered(bench);
  EXPECT_EQ(occurrences(page, ">locks=3 hold=20.5</td>"), 1U);
  EXPECT_EQ(occurrences(page, ">bytes=512</td>"), 1U);
}

TEST(Text, RoundsToThreeDigits) {
  EXPECT_EQ(rounded(0), "0");
  EXPECT_EQ(rounded(0.012345), "0.0123");
  EXPECT_EQ(rounded(1.5), "1.5");
  EXPECT_EQ(rounded(9.999), "10");
  EXPECT_EQ(rounded(100.4), "100");
  EXPECT_EQ(rounded(2000), "2000");
  EXPECT_EQ(rounded(1234567), "1\u202f234\u202f567");
  EXPECT_EQ(rounded(1e-12), "0");
}

TEST(Text, ScalesWithoutStraddlingAStep) {
  EXPECT_EQ(scaled(999), "999");
  EXPECT_EQ(scaled(999.9), "1\u202fk");
  EXPECT_EQ(scaled(1500), "1.5\u202fk");
  EXPECT_EQ(scaled(999999), "1\u202fM");
  EXPECT_EQ(scaled(3.21e9), "3.21\u202fG");
}

TEST(Text, EscapesEveryCharacterOfMarkup) {
  EXPECT_EQ(escape_html("<a b='c' d=\"e\">&"), "&lt;a b=&#39;c&#39; d=&quot;e&quot;&gt;&amp;");
  EXPECT_EQ(script_json("</script>&\u2028"), "\"\\u003c/script\\u003e\\u0026\\u2028\"");
}

}  // namespace
}  // namespace lockflight::report
