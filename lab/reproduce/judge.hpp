// When a claim holds.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "lab/reproduce/claims.hpp"

namespace lockflight::reproduce {

/// A ratio holds within this factor, a value within this part of it.
constexpr double ratio_tolerance = 1.5;
constexpr double value_tolerance = 0.3;
/// The factor within which two numbers are the same. Two that are claimed to differ must be farther
/// apart than that where the paper does not say by how much (plateau-not-before of the DLM paper).
constexpr double same_tolerance = 1.2;

/// True if ours is within a factor of the paper's number. A number that was computed from printed
/// digits is not exact in its last digit.
[[nodiscard]] constexpr bool within_factor(double ours, double of, double factor) {
  constexpr double last_digit = 1e-9;
  return ours <= of * factor * (1 + last_digit) && ours >= of / factor * (1 - last_digit);
}

/// True if a ratio says by how much two numbers differ that differ by less than the tolerance, such
/// as "25 % more". Then the tolerance is one of the difference, or no difference would do as well.
[[nodiscard]] constexpr bool is_small_difference(double ratio) {
  return ratio != 1 && ratio < ratio_tolerance && ratio > 1 / ratio_tolerance;
}

/// The tolerance of a claim in the results; 0 for a direction, which has none.
[[nodiscard]] constexpr double tolerance_of(const claim& c) {
  switch (c.how_close) {
    case kind::ratio:
      return c.value == 1 ? same_tolerance : ratio_tolerance;
    case kind::value:
      return value_tolerance;
    case kind::direction:
      return 0;
  }
  return 0;
}

/// The verdict about a claim.
enum class verdict : std::uint8_t {
  holds,
  misses,
  undecided,  ///< a direction that lies within what chance does to it; counts as missed
};

/// The seeds with which the runs of a direction are carried out. The other kinds have a tolerance,
/// and one seed, the first: of a number near its edge, chance may decide.
inline constexpr std::uint64_t seeds[] = {1, 2, 3};
[[nodiscard]] constexpr std::span<const std::uint64_t> seeds_of(kind what) {
  return std::span(seeds).first(what == kind::direction ? std::size(seeds) : 1);
}

/// Our number with each seed, as one number and how far chance moves it.
struct spread_number {
  double median = 0;
  double spread = 0;  ///< the largest less the smallest
};
[[nodiscard]] inline spread_number over_seeds(std::vector<double> each) {
  std::sort(each.begin(), each.end());
  return {each[each.size() / 2], each.back() - each.front()};
}

/// True if the measured value `ours` agrees with the paper's claim.
[[nodiscard]] constexpr bool holds(const claim& c, double ours) {
  switch (c.how_close) {
    case kind::ratio:
      if (is_small_difference(c.value))
        return within_factor((ours - 1) / (c.value - 1), 1, ratio_tolerance);
      return within_factor(ours, c.value, tolerance_of(c));
    case kind::value: {
      constexpr double last_digit = 1e-9;
      const double apart = ours > c.value ? ours - c.value : c.value - ours;
      return apart <= value_tolerance * c.value * (1 + last_digit);
    }
    case kind::direction:
      return c.relation == '>' ? ours > c.value : ours < c.value;
  }
  return false;
}

/// The verdict with the spread by chance: a direction must be farther from its bound than that.
[[nodiscard]] constexpr verdict judged(const claim& c, spread_number ours) {
  if (c.how_close == kind::direction) {
    const double apart = ours.median > c.value ? ours.median - c.value : c.value - ours.median;
    if (apart <= ours.spread) return verdict::undecided;
  }
  return holds(c, ours.median) ? verdict::holds : verdict::misses;
}

}  // namespace lockflight::reproduce
