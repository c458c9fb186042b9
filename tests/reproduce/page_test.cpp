// The content of the page of claims, as text.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "reproduce/page.hpp"
#include "reproduce/support.hpp"

namespace lockflight::reproduce {
namespace {

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

/// A claim that holds and one that was not measured.
std::string page_of(std::vector<paper> papers) {
  claim unmeasured = papers.front().claims.front();
  unmeasured.id = "unmeasured";
  papers.front().claims.push_back(unmeasured);
  const auto& claims = papers.front().claims;
  return render_html(
      papers,
      {.claims =
           {{.of = &claims[0], .ours = 12.5, .spread = 0, .said = verdict::holds, .why = ""},
            {.of = &claims[1], .ours = {}, .spread = 0, .said = verdict::misses, .why = "no time"}},
       .figures = {},
       .beyond = {}});
}

TEST(Page, HasARowForEachClaimAndACardForEachFigure) {
  const std::string page = page_of({parse_claims(head + one_claim, "some.toml")});
  EXPECT_EQ(occurrences(page, "<tr id=\"some-"), 2u);
  EXPECT_EQ(occurrences(page, "class=\"card\" data-"), 1u);
  EXPECT_EQ(occurrences(page, "<tr id=\"some-unmeasured\" class=\"missed\">"), 1u);
  for (const char* const part : {"queues beat spinning", "&gt; 0.001 x", "12.5", "no time",
                                 "section 5.1, figure 3", "1 of 2"})
    EXPECT_NE(page.find(part), std::string::npos) << part;
}

TEST(Page, IsCompleteInItself) {
  const std::string page = page_of({parse_claims(head + one_claim, "some.toml")});
  EXPECT_EQ(page.find("<!DOCTYPE html>"), 0u);
  EXPECT_NE(page.find("Chart.js v3"), std::string::npos);
  for (const char* const outside : {"<script src", "<link rel=\"stylesheet\"", "fetch(", "<img"})
    EXPECT_EQ(page.find(outside), std::string::npos) << outside;
}

TEST(Page, TextOfClaimsNeverBecomesMarkup) {
  std::vector<paper> papers{parse_claims(head + one_claim, "some.toml")};
  const std::size_t scripts = occurrences(page_of(papers), "<script");
  papers.front().title = papers.front().claims.front().what = papers.front().claims.front().where =
      "</script><script>alert(1)</script>{{title}}";
  const std::string page = page_of(papers);
  EXPECT_EQ(occurrences(page, "<script"), scripts);
  EXPECT_EQ(page.find("alert(1)</script>"), std::string::npos);
}

}  // namespace
}  // namespace lockflight::reproduce
