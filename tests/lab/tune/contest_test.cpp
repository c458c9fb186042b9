// The comparison of two settings: in turn, by more than chance, within the budget.
#include "lab/tune/contest.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>

namespace lockflight::tune {
namespace {

setting at(std::int64_t x) { return {{"x", x}}; }

/// Measures a function's values; records the order. Each run takes a second.
struct made_up {
  std::function<double(std::int64_t x, unsigned turn)> value;
  std::vector<std::int64_t> order{};

  contest in(const way& how) {
    return {how,
            [this](const setting& what, unsigned turn) {
              order.push_back(what.at("x"));
              return value(what.at("x"), turn);
            },
            [this] { return static_cast<double>(order.size()); }};
  }
};

double itself(std::int64_t x, unsigned) { return static_cast<double>(x); }

TEST(Sample, MedianAndSpread) {
  EXPECT_EQ((sample{{3, 1, 2}}.median()), 2);
  EXPECT_EQ((sample{{3, 1, 2}}.spread()), 2);
  EXPECT_EQ((sample{{4, 1, 2, 3}}.median()), 2.5);
  EXPECT_EQ((sample{{100, 1, 2, 3, 4}}.spread()), 2) << "the ends do not count";
  EXPECT_EQ((sample{{7}}.median()), 7);
  EXPECT_EQ((sample{{7}}.spread()), 0);
}

TEST(Judge, OnlyWhatIsMoreThanTheSpreadCounts) {
  const sample base{{10, 11, 12}};
  EXPECT_EQ(judge({{13, 13, 13}}, base, false), verdict::even) << "2 more, and the spread is 2";
  EXPECT_EQ(judge({{14, 14, 14}}, base, false), verdict::better);
  EXPECT_EQ(judge({{14, 14, 14}}, base, true), verdict::worse);
  EXPECT_EQ(judge({{8, 8, 8}}, base, true), verdict::better);
  EXPECT_EQ(judge({{4, 14, 24}}, base, false), verdict::even) << "the candidate's spread as well";
  EXPECT_EQ(judge(base, base, false), verdict::even);
}

TEST(Contest, BothAreMeasuredInTurn) {
  made_up machine{itself};
  contest held = machine.in({.turns = 3});
  EXPECT_EQ(held.hold(at(5), at(4), "x"), verdict::better);
  EXPECT_EQ(machine.order, (std::vector<std::int64_t>{5, 4, 5, 4, 5, 4}));
  ASSERT_EQ(held.attempts().size(), 1u);
  const attempt& a = held.attempts().front();
  EXPECT_EQ(a.moved, "x");
  EXPECT_EQ(a.value, 5);
  EXPECT_EQ(a.candidate.values, (std::vector<double>{5, 5, 5}));
  EXPECT_EQ(a.best.values, (std::vector<double>{4, 4, 4}));
  EXPECT_EQ(held.runs(), 6u);
}

TEST(Contest, WhoIsBehindInMostTurnsIsNotMeasuredAgain) {
  made_up machine{itself};
  contest held = machine.in({.turns = 5});
  EXPECT_EQ(held.hold(at(3), at(4), "x"), verdict::worse);
  EXPECT_EQ(machine.order, (std::vector<std::int64_t>{3, 4, 3, 4, 3, 4}));
  made_up less{itself};
  contest slower = less.in({.turns = 5, .less_is_better = true});
  EXPECT_EQ(slower.hold(at(5), at(4), "x"), verdict::worse);
  EXPECT_EQ(less.order.size(), 6u);
  made_up first_two{
      [](std::int64_t x, unsigned turn) { return static_cast<double>(turn < 2 ? x : 10 - x); }};
  contest turning = first_two.in({.turns = 5});
  EXPECT_EQ(turning.hold(at(3), at(4), "x"), verdict::even);
  EXPECT_EQ(first_two.order.size(), 10u);
}

// A machine that gets slower all the time does so for both.
TEST(Contest, AMachineThatGetsSlowerFavoursNobody) {
  made_up machine{[&](std::int64_t x, unsigned) {
    return 100.0 + static_cast<double>(x) - static_cast<double>(machine.order.size());
  }};
  contest held = machine.in({.turns = 5});
  EXPECT_EQ(held.hold(at(1), at(1), "x"), verdict::even);
  EXPECT_EQ(held.hold(at(40), at(1), "x"), verdict::better);
}

// A step that is kept by chance, now and then, does not survive the last measurement as well.
TEST(Contest, NoiseAloneGainsNothing) {
  std::minstd_rand random(3);
  made_up machine{
      [&](std::int64_t, unsigned) { return 100.0 + static_cast<double>(random() % 1'000) / 100; }};
  contest held = machine.in({.turns = 5});
  int kept = 0;
  int gained = 0;
  for (int i = 0; i < 1'000; ++i) {
    if (held.hold(at(2), at(1), "x") != verdict::better) continue;
    ++kept;
    gained += held.decide(at(1), at(2)).gained ? 1 : 0;
  }
  EXPECT_LE(kept, 100) << "of 1000";
  EXPECT_LE(gained, 15) << "of 1000";
}

TEST(Contest, WhatIsExactIsMeasuredOnce) {
  made_up machine{[](std::int64_t x, unsigned turn) { return static_cast<double>(x) + turn; }};
  contest held = machine.in({.turns = 3, .exact = true});
  EXPECT_EQ(held.hold(at(9), at(4), "x"), verdict::better);
  EXPECT_EQ(held.hold(at(19), at(9), "x"), verdict::better);
  EXPECT_EQ(held.runs(), 9u);
  EXPECT_EQ(held.attempts()[0].candidate.values, (std::vector<double>{9, 10, 11}));
  EXPECT_EQ(held.attempts()[1].best.values, (std::vector<double>{9, 10, 11}));
}

TEST(Contest, WhatChangesNothingIsTheSameOnlyIfThatIsCertain) {
  made_up exact{[](std::int64_t, unsigned turn) { return static_cast<double>(turn); }};
  contest held = exact.in({.turns = 3, .exact = true});
  EXPECT_EQ(held.hold(at(9), at(4), "x"), verdict::same);
  // As good as the candidate before it, not as the best.
  made_up level{[](std::int64_t x, unsigned turn) {
    return (x < 8 ? 1.0 : 2.0) + 3 * static_cast<double>(turn);
  }};
  contest on = level.in({.turns = 3, .exact = true});
  EXPECT_EQ(on.hold(at(9), at(4), "x"), verdict::even);
  EXPECT_EQ(on.hold(at(10), at(4), "x"), verdict::same);
  made_up real{[](std::int64_t, unsigned) { return 1.0; }};
  contest by_chance = real.in({.turns = 3});
  EXPECT_EQ(by_chance.hold(at(9), at(4), "x"), verdict::even);
}

// The last measurement takes 2 * turns, and is within the budget too.
TEST(Contest, EndsWithinItsRuns) {
  for (const std::uint64_t budget : {0u, 6u, 11u, 12u, 17u, 18u, 30u}) {
    made_up machine{itself};
    contest held = machine.in({.turns = 3, .most = {.runs = budget}});
    std::int64_t x = 1;
    while (x < 10 && held.hold(at(x + 1), at(x), "x") == verdict::better) ++x;
    EXPECT_EQ(x, budget == 0 ? 10 : budget < 12 ? 1 : budget < 18 ? 2 : budget < 30 ? 3 : 5);
    static_cast<void>(held.decide(at(1), at(x)));
    const std::uint64_t most = std::max<std::uint64_t>(budget == 0 ? 1'000 : budget, 6);
    EXPECT_LE(held.runs(), most) << budget;
    EXPECT_EQ(held.runs(), machine.order.size());
  }
}

TEST(Contest, EndsWithinItsSeconds) {
  made_up machine{itself};
  contest held = machine.in({.turns = 3, .most = {.seconds = 20}});
  EXPECT_EQ(held.hold(at(2), at(1), "x"), verdict::better);
  EXPECT_EQ(held.hold(at(3), at(2), "x"), verdict::better);
  EXPECT_EQ(held.hold(at(4), at(3), "x"), std::nullopt) << "12 s are over, 12 s would come";
  EXPECT_EQ(held.runs(), 12u);
}

TEST(Contest, TheLastMeasurementDecides) {
  made_up machine{itself};
  contest held = machine.in({.turns = 3});
  EXPECT_TRUE(held.decide(at(4), at(5)).gained);
  EXPECT_FALSE(held.decide(at(5), at(4)).gained);
  machine.order.clear();
  const contest::last same = held.decide(at(4), at(4));
  EXPECT_FALSE(same.gained);
  EXPECT_EQ(same.start.values, same.found.values);
  EXPECT_EQ(machine.order.size(), 3u);
}

// On an exact fabric it has seeds of its own: a setting that was best by luck with some seeds is
// not with others.
TEST(Contest, TheLastMeasurementHasSeedsOfItsOwn) {
  made_up machine{[](std::int64_t x, unsigned turn) {
    return turn < 3 ? static_cast<double>(x) : 50.0 + static_cast<double>(turn);
  }};
  contest held = machine.in({.turns = 3, .exact = true});
  EXPECT_EQ(held.hold(at(9), at(4), "x"), verdict::better);
  const contest::last last = held.decide(at(4), at(9));
  EXPECT_EQ(last.found.values, (std::vector<double>{53, 54, 55}));
  EXPECT_FALSE(last.gained);
}

}  // namespace
}  // namespace lockflight::tune
