// When a claim holds.
#pragma once

#include "reproduce/claims.hpp"

namespace lockflight::reproduce {

/// A ratio holds within this factor, a value within this part of it.
constexpr double ratio_tolerance = 1.5;
constexpr double value_tolerance = 0.3;

/// The tolerance of a kind of claim in the results; 0 for a direction, which has none.
[[nodiscard]] constexpr double tolerance_of(kind what) {
  switch (what) {
    case kind::ratio:
      return ratio_tolerance;
    case kind::value:
      return value_tolerance;
    case kind::direction:
      return 0;
  }
  return 0;
}

/// Whether what we measured is what the paper claims.
[[nodiscard]] constexpr bool holds(const claim& c, double ours) {
  // A value that was computed from printed digits is not exact in its last digit.
  constexpr double last_digit = 1e-9;
  switch (c.how_close) {
    case kind::ratio:
      return ours <= c.value * ratio_tolerance * (1 + last_digit) &&
             ours >= c.value / ratio_tolerance * (1 - last_digit);
    case kind::value: {
      const double apart = ours > c.value ? ours - c.value : c.value - ours;
      return apart <= value_tolerance * c.value * (1 + last_digit);
    }
    case kind::direction:
      return c.relation == '>' ? ours > c.value : ours < c.value;
  }
  return false;
}

}  // namespace lockflight::reproduce
