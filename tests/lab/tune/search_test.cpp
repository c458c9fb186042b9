// The search, on made-up objectives: its result, the parameters that it does not change, and its
// end.
#include "lab/tune/search.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

namespace lockflight::tune {
namespace {

std::vector<std::int64_t> powers_of_two(int upto) {
  std::vector<std::int64_t> rungs;
  for (int i = 0; i <= upto; ++i) rungs.push_back(std::int64_t{1} << i);
  return rungs;
}

double rung(std::int64_t value) { return std::log2(static_cast<double>(value)); }

/// Larger is better; values are exact. Records the candidates.
struct certain {
  std::function<double(const setting&)> of;
  verdict level = verdict::even;
  std::vector<setting> tried{};

  compare hold() {
    return [this](const setting& candidate, const setting& best,
                  const std::string& moved) -> std::optional<verdict> {
      EXPECT_NE(candidate.at(moved), best.at(moved));
      tried.push_back(candidate);
      const double gain = of(candidate) - of(best);
      return gain > 0 ? verdict::better : gain < 0 ? verdict::worse : level;
    };
  }
};

// From everywhere to everywhere.
TEST(Search, FindsTheOptimumOfALadderThatRisesToOnePoint) {
  const axis along{"x", powers_of_two(20)};
  for (int from = 0; from <= 20; ++from)
    for (int top = 0; top <= 20; ++top) {
      certain objective{[&](const setting& s) { return -std::abs(rung(s.at("x")) - top); }};
      const found got = climb({along}, {{"x", std::int64_t{1} << from}}, objective.hold());
      EXPECT_EQ(got.best.at("x"), std::int64_t{1} << top) << "from rung " << from;
      EXPECT_TRUE(got.finished);
      EXPECT_LE(objective.tried.size(), 13u) << "from rung " << from << " to " << top;
    }
}

TEST(Search, FindsItWhereSeveralParametersDoNotDependOnEachOther) {
  const std::vector<axis> axes{{"x", powers_of_two(10)}, {"y", {0, 3, 9, 27}}, {"z", {5}}};
  certain objective{[](const setting& s) {
    return -std::abs(rung(s.at("x")) - 7) - std::abs(static_cast<double>(s.at("y")) - 9);
  }};
  const found got = climb(axes, {{"x", 4}, {"y", 0}, {"z", 5}}, objective.hold());
  EXPECT_EQ(got.best, (setting{{"x", 128}, {"y", 9}, {"z", 5}}));
}

// A ridge: each can go on only after the other has.
TEST(Search, GoesRoundUntilNothingGains) {
  const std::vector<axis> axes{{"x", powers_of_two(12)}, {"y", powers_of_two(12)}};
  certain objective{[](const setting& s) {
    const double x = rung(s.at("x"));
    const double y = rung(s.at("y"));
    return x + y - 3 * std::abs(x - y);
  }};
  const found got = climb(axes, {{"x", 1}, {"y", 2}}, objective.hold());
  EXPECT_GT(objective.of(got.best), objective.of({{"x", 1}, {"y", 2}}));
  for (const axis& along : axes)
    for (const int step : {-1, 1}) {
      setting next = got.best;
      const std::int64_t moved = step < 0 ? next.at(along.name) / 2 : next.at(along.name) * 2;
      if (moved < 1 || moved > 4096) continue;
      next[along.name] = moved;
      EXPECT_LE(objective.of(next), objective.of(got.best)) << "a single step gains";
    }
}

TEST(Search, KeepsTheStartIfNothingGains) {
  const axis along{"x", powers_of_two(16)};
  certain worse{[](const setting& s) { return s.at("x") == 256 ? 1.0 : 0.0; }};
  EXPECT_EQ(climb({along}, {{"x", 256}}, worse.hold()).best.at("x"), 256);

  int asked = 0;
  const found even =
      climb({along}, {{"x", 256}}, [&](const setting&, const setting& best, const std::string&) {
        EXPECT_EQ(best.at("x"), 256);
        ++asked;
        return verdict::even;
      });
  EXPECT_EQ(even.best.at("x"), 256);
  EXPECT_TRUE(even.finished);
  EXPECT_EQ(asked, 8) << "4 long steps, and two shorter ones each way";
}

TEST(Search, GoesNoFurtherWhereNothingDependsOnIt) {
  const axis along{"x", powers_of_two(16)};
  certain flat{[](const setting&) { return 1.0; }, verdict::same};
  EXPECT_EQ(climb({along}, {{"x", 256}}, flat.hold()).best.at("x"), 256);
  EXPECT_EQ(flat.tried.size(), 2u);
}

// As above, but only beyond a first step: nearer values are still tried.
TEST(Search, LooksBetweenItsStartAndWhereNothingDependsOnIt) {
  const axis along{"x", powers_of_two(16)};
  std::set<std::int64_t> tried;
  const found got =
      climb({along}, {{"x", 1}}, [&](const setting& candidate, const setting&, const std::string&) {
        const std::int64_t x = candidate.at("x");
        tried.insert(x);
        return x == 4 ? verdict::better : x > 16 ? verdict::same : verdict::even;
      });
  EXPECT_EQ(got.best.at("x"), 4);
  EXPECT_FALSE(tried.contains(4096)) << "beyond two that are the same";
}

// A better value may lie behind even ones.
TEST(Search, LooksBehindWhatIsEven) {
  const axis along{"x", powers_of_two(16)};
  const found got = climb(
      {along}, {{"x", 1}}, [](const setting& candidate, const setting& best, const std::string&) {
        const auto value = [](const setting& s) { return s.at("x") >= 4096 ? 1 : 0; };
        return value(candidate) > value(best)   ? verdict::better
               : value(candidate) < value(best) ? verdict::worse
                                                : verdict::even;
      });
  EXPECT_GE(got.best.at("x"), 4096);
}

TEST(Search, TriesNoSettingTwice) {
  const std::vector<axis> axes{{"x", powers_of_two(10)}, {"y", powers_of_two(10)}};
  certain objective{[](const setting& s) {
    return -std::abs(rung(s.at("x")) - 9) - std::abs(rung(s.at("y")) - rung(s.at("x")) / 2);
  }};
  const setting start{{"x", 1}, {"y", 1}};
  static_cast<void>(climb(axes, start, objective.hold()));
  const std::set<setting> different(objective.tried.begin(), objective.tried.end());
  EXPECT_EQ(different.size(), objective.tried.size());
  EXPECT_FALSE(different.contains(start));
}

TEST(Search, EndsWhenTheBudgetDoesWithTheBestSoFar) {
  const axis along{"x", powers_of_two(40)};
  for (int budget = 0; budget < 8; ++budget) {
    int left = budget;
    std::int64_t best = 1;
    const found got = climb({along}, {{"x", 1}},
                            [&](const setting& candidate, const setting&,
                                const std::string&) -> std::optional<verdict> {
                              if (left-- == 0) return std::nullopt;
                              best = candidate.at("x");
                              return verdict::better;
                            });
    EXPECT_EQ(got.best.at("x"), best);
    EXPECT_EQ(best, std::int64_t{1} << (4 * budget));
    EXPECT_FALSE(got.finished);
    EXPECT_EQ(left, -1) << "nothing is asked after the budget is spent";
  }
}

TEST(Ladder, GoesFromTheDefaultToBothEnds) {
  EXPECT_EQ(ladder(1, 20, 6), (std::vector<std::int64_t>{1, 3, 6, 12, 20}));
  EXPECT_EQ(ladder(0, 16, 0), (std::vector<std::int64_t>{0, 1, 2, 4, 8, 16}));
  EXPECT_EQ(ladder(0, 5, 2), (std::vector<std::int64_t>{0, 1, 2, 4, 5}));
  EXPECT_EQ(ladder(7, 7, 7), (std::vector<std::int64_t>{7}));
  EXPECT_EQ(ladder(3, 40, 10), (std::vector<std::int64_t>{3, 5, 10, 20, 40}));
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const auto all = ladder(0, most, 1000);
  EXPECT_EQ(all.front(), 0);
  EXPECT_EQ(all.back(), most);
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));
  EXPECT_LT(all.size(), 70u);
}

}  // namespace
}  // namespace lockflight::tune
