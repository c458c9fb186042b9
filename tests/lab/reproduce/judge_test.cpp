// When a claim holds, at the edges.
#include "lab/reproduce/judge.hpp"

#include <gtest/gtest.h>

namespace lockflight::reproduce {
namespace {

claim of(kind what, double value, char relation = '>') {
  claim c;
  c.how_close = what;
  c.value = value;
  c.relation = relation;
  return c;
}

TEST(Judge, ARatioHoldsWithinAFactor) {
  const claim c = of(kind::ratio, 6);
  for (const double ours : {4.0, 6.0, 9.0}) EXPECT_TRUE(holds(c, ours)) << ours;
  for (const double ours : {0.0, 3.99, 9.01, 60.0}) EXPECT_FALSE(holds(c, ours)) << ours;
}

TEST(Judge, TheSameIsWithinAFifth) {
  const claim c = of(kind::ratio, 1);
  for (const double ours : {0.84, 1.0, 1.2}) EXPECT_TRUE(holds(c, ours)) << ours;
  for (const double ours : {0.83, 1.21}) EXPECT_FALSE(holds(c, ours)) << ours;
  EXPECT_EQ(tolerance_of(c), 1.2);
}

// "25 % more" is not met by 5 % more, which a factor of 1.5 would accept.
TEST(Judge, ASmallDifferenceHoldsWithinAFactorOfItself) {
  const claim more = of(kind::ratio, 1.24);
  for (const double ours : {1.16, 1.24, 1.36}) EXPECT_TRUE(holds(more, ours)) << ours;
  for (const double ours : {0.9, 1.0, 1.15, 1.37}) EXPECT_FALSE(holds(more, ours)) << ours;
  const claim less = of(kind::ratio, 0.76);
  for (const double ours : {0.84, 0.76, 0.64}) EXPECT_TRUE(holds(less, ours)) << ours;
  for (const double ours : {1.0, 1.24, 0.85, 0.63}) EXPECT_FALSE(holds(less, ours)) << ours;
}

TEST(Judge, AValueHoldsWithinAPartOfIt) {
  const claim c = of(kind::value, 10);
  for (const double ours : {7.0, 10.0, 13.0}) EXPECT_TRUE(holds(c, ours)) << ours;
  for (const double ours : {0.0, 6.99, 13.01}) EXPECT_FALSE(holds(c, ours)) << ours;
}

TEST(Judge, AValueOfNothingIsMetByNothingOnly) {
  EXPECT_TRUE(holds(of(kind::value, 0), 0));
  EXPECT_FALSE(holds(of(kind::value, 0), 1e-3));
}

TEST(Judge, ADirectionHasNoTolerance) {
  EXPECT_TRUE(holds(of(kind::direction, 6, '>'), 6.001));
  EXPECT_FALSE(holds(of(kind::direction, 6, '>'), 6));
  EXPECT_TRUE(holds(of(kind::direction, 1, '<'), 0.999));
  EXPECT_FALSE(holds(of(kind::direction, 1, '<'), 1));
}

TEST(Judge, ADirectionMustBeFartherFromItsBoundThanChanceMovesIt) {
  const claim above = of(kind::direction, 1, '>');
  EXPECT_EQ(judged(above, over_seeds({1.02, 1.03, 1.01})), verdict::undecided);  // 0.02 and 0.02
  EXPECT_EQ(judged(above, over_seeds({1.03, 1.04, 1.02})), verdict::holds);
  EXPECT_EQ(judged(above, over_seeds({0.97, 0.96, 0.98})), verdict::misses);
  EXPECT_EQ(judged(above, over_seeds({0.99, 1.01, 0.98})), verdict::undecided);
  // Where chance has no part.
  EXPECT_EQ(judged(above, over_seeds({1, 1, 1})), verdict::undecided);
  EXPECT_EQ(judged(above, over_seeds({2, 2, 2})), verdict::holds);
}

TEST(Judge, TheOtherKindsHaveOneSeedAndATolerance) {
  EXPECT_EQ(seeds_of(kind::direction).size(), 3u);
  EXPECT_EQ(seeds_of(kind::ratio).size(), 1u);
  EXPECT_EQ(seeds_of(kind::value).size(), 1u);
  EXPECT_EQ(judged(of(kind::ratio, 6), over_seeds({6})), verdict::holds);
  EXPECT_EQ(judged(of(kind::value, 6), over_seeds({8})), verdict::misses);
}

TEST(Judge, OfSeveralSeedsTheMedianCounts) {
  const spread_number n = over_seeds({3, 1, 2.5});
  EXPECT_DOUBLE_EQ(n.median, 2.5);
  EXPECT_DOUBLE_EQ(n.spread, 2);
}

}  // namespace
}  // namespace lockflight::reproduce
