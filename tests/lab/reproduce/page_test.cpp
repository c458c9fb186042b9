// The content of the pages, as text.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "lab/reproduce/page.hpp"
#include "tests/lab/reproduce/support.hpp"

namespace lockflight::reproduce {
namespace {

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

constexpr const char* a_papers_figure = R"(
[[figure]]
figure = "figure 3"
panel = "a"
title = "Two locks"
metric = "mean latency"
unit = "us"
x = "ranks"
common = { workload = "ecsb" }
points = [ { x = 2, procs = 2 }, { x = 4, procs = 4 } ]
curves = [ { name = "queue", run = { lock = "d-mcs" } } ]
paper = [ { curve = "queue", x = 4, y = 6.5, said = "section 5.1" } ]
note = "Of some threshold."
)";

/// A paper with a claim that holds, one that was not measured, one that is undecided, and a figure.
class Page : public testing::Test {
 protected:
  Page() : of_(parse_claims(head + one_claim + a_papers_figure, "some.toml")) {
    claim other = of_.claims.front();
    other.id = "unmeasured";
    of_.claims.push_back(other);
    other.id = "close";
    other.where = "section 6, table 2";
    other.missed = "The model lacks a cost.";
    other.because = cause::model;
    of_.claims.push_back(other);
  }

  [[nodiscard]] reproduction made() const {
    const auto& c = of_.claims;
    return {.claims = {{&c[0], 12.5, 0.4, verdict::holds, ""},
                       {&c[1], {}, 0, verdict::misses, "no time"},
                       {&c[2], 0.001, 0.02, verdict::undecided, ""}},
            .figures = {{&of_.figures.front(), {{{{2, 3.25}, {4, 7.5}}, ""}}}},
            .beyond = {}};
  }
  [[nodiscard]] std::string page() const { return page_of_paper(of_, made()); }

  paper of_;
};

TEST_F(Page, HasARowForEachClaim) {
  const std::string text = page();
  EXPECT_EQ(occurrences(text, "<tr id=\"some-"), 3u);
  EXPECT_EQ(occurrences(text, "class=\"missed\"><td"), 1u);
  EXPECT_EQ(occurrences(text, "class=\"missed undecided\"><td"), 1u);
  for (const char* const part :
       {"queues beat spinning", "&gt; 0.001 x", "12.5", "seeds 0.4 apart", "no time",
        "section 5.1, figure 3", "1 of 3\u00a0claims hold, 1 undecided",
        "The other 2 come first below.", "The model lacks a cost."})
    EXPECT_NE(text.find(part), std::string::npos) << part;
}

TEST_F(Page, WhatDoesNotHoldComesBeforeTheChartsAndWhatHoldsAfterThem) {
  const std::string text = page();
  const std::size_t missed = text.find("id=\"missed\"");
  const std::size_t charts = text.find("id=\"charts\"");
  const std::size_t held = text.find("id=\"held\"");
  ASSERT_NE(held, std::string::npos);
  EXPECT_LT(missed, charts);
  EXPECT_LT(charts, held);
  for (const char* const row : {"<tr id=\"some-close\"", "<tr id=\"some-unmeasured\""}) {
    EXPECT_GT(text.find(row), missed) << row;
    EXPECT_LT(text.find(row), charts) << row;
  }
  EXPECT_GT(text.find("<tr id=\"some-one\""), text.find("id=\"figure-3-held\""));
}

TEST_F(Page, AFigureIsAChartWithItsNumbersAndThePapersPoints) {
  const std::string text = page();
  EXPECT_EQ(occurrences(text, "data-number=\"0\""), 1u);
  for (const char* const part :
       {"<h3>Figure 3 (a)</h3><p>Two locks</p>", "<td class=\"num\">3.25</td>",
        "Of some threshold.", "The paper's point of queue is 6.5 (section 5.1).",
        "<a class=\"held\" href=\"#figure-3-held\">✓ 1 of 2\u00a0claims hold</a>",
        "<a class=\"missed\" href=\"#missed\">✗ 1 other</a>"})
    EXPECT_NE(text.find(part), std::string::npos) << part;
  // Without a figure, the claims themselves are drawn; here those of table 2.
  EXPECT_EQ(occurrences(text, "data-group=\"table 2\""), 1u);
  EXPECT_EQ(occurrences(text, "data-group=\"figure 3\""), 0u);
}

TEST_F(Page, ABoundIsNotCalledAValue) {
  EXPECT_EQ(occurrences(page(), "<p>The paper's bounds (plain) and ours, quotients</p>"), 1u);
  of_.claims[2].how_close = kind::ratio;
  EXPECT_EQ(occurrences(page(), "<p>The paper's values (plain) and ours, quotients</p>"), 1u);
}

TEST_F(Page, MissesAreListedByTheirCause) {
  const std::string text = page();
  EXPECT_NE(text.find("by cause: the model of the machine 1 · no cause known 1"),
            std::string::npos);
  EXPECT_LT(text.find("<tr id=\"some-close\""), text.find("<tr id=\"some-unmeasured\""));
}

TEST_F(Page, MissesWithTheSameRemarkShareItsCell) {
  of_.claims[1].because = cause::model;
  reproduction all = made();
  all.claims[1].why = "The model lacks a cost.";
  const std::string text = page_of_paper(of_, all);
  EXPECT_EQ(occurrences(text, "<td class=\"words\" rowspan=\"2\">"), 1u);
  EXPECT_EQ(occurrences(text, "<tr id=\"some-"), 3u);
}

TEST_F(Page, TheIndexLeadsToThePages) {
  const pages_beside beside{.index = "all.html", .pages = {{"some", "all-some.html"}}};
  const std::string index = page_of_index({of_}, made(), beside);
  EXPECT_NE(index.find("<a href=\"all-some.html\">Some paper</a>"), std::string::npos);
  EXPECT_NE(index.find("<a href=\"all-some.html#some-close\">close</a>"), std::string::npos);
  EXPECT_LT(index.find("id=\"causes\""), index.find("id=\"papers\""));
  EXPECT_NE(page_of_paper(of_, made(), beside).find("<a href=\"all.html\">"), std::string::npos);
  EXPECT_EQ(page().find("all papers"), std::string::npos) << "it stands alone";
}

TEST_F(Page, IsCompleteInItself) {
  const std::string text = page();
  EXPECT_EQ(text.find("<!DOCTYPE html>"), 0u);
  EXPECT_NE(text.find("Chart.js v3"), std::string::npos);
  for (const char* const outside : {"<script src", "<link rel=\"stylesheet\"", "fetch(", "<img"})
    EXPECT_EQ(text.find(outside), std::string::npos) << outside;
}

TEST_F(Page, TextOfClaimsNeverBecomesMarkup) {
  const std::size_t scripts = occurrences(page(), "<script");
  const std::string evil = "</script><script>alert(1)</script>{{title}}";
  of_.title = of_.machine = evil;
  claim& c = of_.claims.back();
  c.what = c.where = c.missed = c.id = evil;
  figure& f = of_.figures.front();
  f.title = f.note = f.x_label = f.curves.front().name = f.printed.front().said = evil;
  for (const std::string& text :
       {page(), page_of_index({of_}, made(), {.index = "i", .pages = {{"some", "s"}}})}) {
    EXPECT_EQ(occurrences(text, "<script"), scripts);
    EXPECT_EQ(text.find("alert(1)</script>"), std::string::npos);
  }
}

}  // namespace
}  // namespace lockflight::reproduce
