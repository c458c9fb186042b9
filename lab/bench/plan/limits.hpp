// The numbers that a comparison accepts. A request is checked against them, and nothing else checks
// them; a program that reads a text which is no number refuses it in the same words.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lab/bench/workload/plan.hpp"

namespace lockflight::bench {

template <class Number>
struct limits {
  Number least;
  Number most;

  /// True if the value is within the limits; false for NaN.
  [[nodiscard]] constexpr bool admit(Number value) const { return value >= least && value <= most; }
};

// The limits of each option.
inline constexpr limits<std::uint64_t> ops_limits{1, 1'000'000'000'000};
inline constexpr limits<std::uint64_t> seed_limits{0, UINT64_MAX};
inline constexpr limits<double> writers_limits{0, 1};
inline constexpr limits<std::uint64_t> sample_limits{1, 1'000};  // a run reads the clock at times
inline constexpr limits<std::uint64_t> locks_limits{1, 100'000};
inline constexpr limits<double> locality_limits{0, 1};
inline constexpr limits<double> think_limits_us{0, 1e6};
inline constexpr limits<double> call_limits_us{0, 1e6};
inline constexpr limits<double> hold_limits_us{0, 1e6};
inline constexpr limits<double> skew_limits{0, 5};
inline constexpr limits<std::uint64_t> bytes_limits{1, most_bytes};
inline constexpr limits<std::uint64_t> server_load_limits{0, 1'000};
inline constexpr limits<std::uint64_t> flags_at_limits{0, 10'000'000};
/// The limits of the time of a run. Virtual time may be arbitrarily short, but not 0.
[[nodiscard]] limits<double> seconds_limits(std::string_view fabric);
[[nodiscard]] limits<int> procs_limits(std::string_view fabric);

/// "a whole number from 1 to 1000", "a number from 0 to 1".
[[nodiscard]] std::string in_words(limits<std::uint64_t> of);
[[nodiscard]] std::string in_words(limits<double> of);
/// "whole numbers from 1 to 4096, joined by commas".
[[nodiscard]] std::string in_words(limits<int> of_each);

/// How many ranks "2x4" makes. Throws bad_request unless a fabric can have them.
[[nodiscard]] int ranks_of_levels(const std::string& levels, std::string_view fabric);

}  // namespace lockflight::bench
