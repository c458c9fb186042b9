// A histogram of times with buckets that grow with the value (as HdrHistogram's do): a fixed size,
// and the same relative error everywhere.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace lockflight::bench {

/// Values below 2 * steps are exact; every octave above is cut into `steps` buckets, so that a
/// result is at most 1 / (2 * steps) = 0.8 % off. All zeroes is empty, and it has no
/// pointers: it lies in memory that ranks share, each filling its own.
class histogram {
 public:
  static constexpr int step_bits = 6;
  static constexpr std::uint64_t steps = std::uint64_t{1} << step_bits;
  static constexpr int value_bits = 42;  // half an hour of ticks at 2.6 GHz
  static constexpr std::size_t buckets = ((value_bits - step_bits) << step_bits) + steps;

  [[gnu::always_inline]] void record(std::uint64_t value) {
    ++counts_[bucket_of(value)];
    sum_ += value;
    max_ = std::max(max_, value);
  }

  /// Writes only to buckets in use: a page that was not touched stays uncommitted.
  void clear() {
    if (empty()) return;
    for (std::size_t i = 0; i < used(); ++i)
      if (counts_[i] != 0) counts_[i] = 0;
    sum_ = 0;
    max_ = 0;
  }

  histogram& operator+=(const histogram& other) {
    if (other.empty()) return *this;
    for (std::size_t i = 0; i < other.used(); ++i) counts_[i] += other.counts_[i];
    sum_ += other.sum_;
    max_ = std::max(max_, other.max_);
    return *this;
  }

  [[nodiscard]] bool empty() const { return max_ == 0 && counts_[0] == 0; }
  [[nodiscard]] std::uint64_t count() const {
    if (empty()) return 0;
    std::uint64_t all = 0;
    for (std::size_t i = 0; i < used(); ++i) all += counts_[i];
    return all;
  }
  /// Exact, as is the mean. 0 when nothing was recorded.
  [[nodiscard]] std::uint64_t max() const { return max_; }
  [[nodiscard]] double mean() const {
    const std::uint64_t n = count();
    return n == 0 ? 0 : static_cast<double>(sum_) / static_cast<double>(n);
  }

  /// The standard deviation of all values, each taken for the middle of its bucket.
  [[nodiscard]] double deviation() const {
    const std::uint64_t n = count();
    if (n == 0) return 0;
    const double centre = mean();
    double squares = 0;
    for (std::size_t i = 0; i < used(); ++i) {
      const double apart = value_of(i) - centre;
      squares += static_cast<double>(counts_[i]) * apart * apart;
    }
    return std::sqrt(squares / static_cast<double>(n));
  }

  /// The smallest value that at least that fraction of all values do not exceed (the nearest-rank
  /// percentile). 0 when nothing was recorded.
  [[nodiscard]] double quantile(double fraction) const {
    const auto all = static_cast<double>(count());
    const double wanted = std::max(1.0, std::ceil(fraction * all));
    double below = 0;
    for (std::size_t i = 0; i < buckets; ++i) {
      below += static_cast<double>(counts_[i]);
      if (counts_[i] != 0 && below >= wanted) return value_of(i);
    }
    return static_cast<double>(max_);
  }

  /// Points (value, fraction of all values up to it) of the cumulative distribution: the first at
  /// or past each of `fractions`, which ascend, and none twice.
  [[nodiscard]] std::vector<std::pair<double, double>> cumulative(
      const std::vector<double>& fractions) const {
    std::vector<std::pair<double, double>> points;
    const auto all = static_cast<double>(count());
    double below = 0;
    auto next = fractions.begin();
    for (std::size_t i = 0; i < buckets && next != fractions.end(); ++i) {
      if (counts_[i] == 0) continue;
      below += static_cast<double>(counts_[i]);
      if (below / all < *next) continue;
      points.emplace_back(value_of(i), below / all);
      while (next != fractions.end() && *next <= below / all) ++next;
    }
    return points;
  }

  [[nodiscard]] static constexpr std::size_t bucket_of(std::uint64_t value) {
    value = std::min(value, (std::uint64_t{1} << value_bits) - 1);
    if (value < 2 * steps) return value;
    const int shift = static_cast<int>(std::bit_width(value)) - step_bits - 1;
    return (static_cast<std::size_t>(shift) << step_bits) + (value >> shift);
  }
  [[nodiscard]] static constexpr std::uint64_t lowest_in(std::size_t bucket) {
    if (bucket < 2 * steps) return bucket;
    const std::size_t shift = (bucket >> step_bits) - 1;
    return (bucket - (shift << step_bits)) << shift;
  }

 private:
  // The first buckets, which hold all values; no page of the others is touched.
  [[nodiscard]] std::size_t used() const { return bucket_of(max_) + 1; }

  // The middle of a bucket, but at most the largest recorded value.
  [[nodiscard]] double value_of(std::size_t bucket) const {
    const std::uint64_t width =
        bucket < 2 * steps ? 1 : std::uint64_t{1} << ((bucket >> step_bits) - 1);
    const double middle =
        static_cast<double>(lowest_in(bucket)) + static_cast<double>(width - 1) / 2;
    return std::min(middle, static_cast<double>(max_));
  }

  // First, beside the data before the histogram, so that no page is touched for these alone.
  std::uint64_t sum_ = 0;
  std::uint64_t max_ = 0;
  std::array<std::uint64_t, buckets> counts_{};
};

static_assert(histogram::bucket_of((std::uint64_t{1} << histogram::value_bits) - 1) ==
              histogram::buckets - 1);
static_assert(histogram::lowest_in(histogram::bucket_of(128)) == 128);

}  // namespace lockflight::bench
