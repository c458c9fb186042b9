// When a claim holds, at the edges.
#include "reproduce/judge.hpp"

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

}  // namespace
}  // namespace lockflight::reproduce
