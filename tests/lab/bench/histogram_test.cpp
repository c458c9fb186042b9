// The histogram against the exact answers.
#include "lab/bench/workload/histogram.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

namespace lockflight::bench {
namespace {

constexpr double tolerance = 0.5 / static_cast<double>(histogram::steps);

std::unique_ptr<histogram> of(const std::vector<std::uint64_t>& values) {
  auto h = std::make_unique<histogram>();
  for (const std::uint64_t v : values) h->record(v);
  return h;
}

/// The nearest-rank percentile of sorted values.
std::uint64_t exact(const std::vector<std::uint64_t>& sorted, double fraction) {
  const auto rank = static_cast<std::size_t>(
      std::max(1.0, std::ceil(fraction * static_cast<double>(sorted.size()))));
  return sorted[rank - 1];
}

void expect_close(double is, std::uint64_t should) {
  EXPECT_NEAR(is, static_cast<double>(should), 1e-9 + tolerance * static_cast<double>(should));
}

void compare(std::vector<std::uint64_t> values) {
  const auto h = of(values);
  std::sort(values.begin(), values.end());
  for (const double fraction : {0.0, 0.01, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 1.0})
    expect_close(h->quantile(fraction), exact(values, fraction));
  EXPECT_EQ(h->count(), values.size());
  EXPECT_EQ(h->max(), values.back());
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  EXPECT_NEAR(h->mean(), sum / static_cast<double>(values.size()), 1e-9 * sum);
}

TEST(Histogram, AgreesWithExactPercentiles) {
  std::mt19937_64 random(7);
  std::vector<std::uint64_t> uniform, exponential, heavy_tail;
  std::exponential_distribution<double> fades(1e-3);
  std::lognormal_distribution<double> tail(6, 3);
  for (int i = 0; i < 100'000; ++i) {
    uniform.push_back(random() % 1'000'000);
    exponential.push_back(static_cast<std::uint64_t>(fades(random)));
    heavy_tail.push_back(static_cast<std::uint64_t>(std::min(tail(random), 4e12)));
  }
  compare(uniform);
  compare(exponential);
  compare(heavy_tail);
  compare({42});
  compare({0, 0, 0});
  compare({1, 1'000'000'000'000});
}

TEST(Histogram, EmptyIsZero) {
  const auto h = std::make_unique<histogram>();
  EXPECT_EQ(h->count(), 0u);
  EXPECT_EQ(h->quantile(0.5), 0);
  EXPECT_EQ(h->mean(), 0);
  EXPECT_EQ(h->max(), 0u);
  EXPECT_TRUE(h->cumulative({0.5, 1}).empty());
}

TEST(Histogram, SmallValuesAreExact) {
  for (std::uint64_t v = 0; v < 2 * histogram::steps; ++v) EXPECT_EQ(of({v})->quantile(1), v);
}

TEST(Histogram, BucketsTileTheValues) {
  for (std::size_t b = 1; b < histogram::buckets; ++b) {
    const std::uint64_t low = histogram::lowest_in(b);
    ASSERT_EQ(histogram::bucket_of(low), b);
    ASSERT_EQ(histogram::bucket_of(low - 1), b - 1);
    const std::uint64_t width = low - histogram::lowest_in(b - 1);
    ASSERT_LE(static_cast<double>(width - 1) / 2, tolerance * static_cast<double>(low));
  }
}

TEST(Histogram, WhatIsTooLargeGoesIntoTheLastBucketAndKeepsTheMaximum) {
  const auto h = of({~std::uint64_t{0}});
  EXPECT_EQ(h->count(), 1u);
  EXPECT_EQ(h->max(), ~std::uint64_t{0});
}

TEST(Histogram, MergingIsRecordingBoth) {
  std::mt19937_64 random(11);
  std::vector<std::uint64_t> one, other, both;
  for (int i = 0; i < 10'000; ++i) {
    (i % 3 == 0 ? one : other).push_back(random() >> (random() % 60 + 22 > 63 ? 40 : 30));
    both.push_back((i % 3 == 0 ? one : other).back());
  }
  const auto merged = of(one);
  *merged += *of(other);
  const auto whole = of(both);
  for (const double fraction : {0.1, 0.5, 0.9, 0.999, 1.0})
    EXPECT_EQ(merged->quantile(fraction), whole->quantile(fraction));
  EXPECT_EQ(merged->mean(), whole->mean());
  EXPECT_EQ(merged->max(), whole->max());
}

TEST(Histogram, CumulativePointsAscendToOne) {
  std::mt19937_64 random(3);
  std::vector<std::uint64_t> values;
  for (int i = 0; i < 50'000; ++i) values.push_back(random() % 100'000);
  const auto h = of(values);
  std::sort(values.begin(), values.end());
  std::vector<double> fractions;
  for (int i = 1; i <= 50; ++i) fractions.push_back(i / 50.0);
  const auto points = h->cumulative(fractions);
  ASSERT_GT(points.size(), 40u);
  ASSERT_LE(points.size(), fractions.size());
  EXPECT_EQ(points.back().second, 1);
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (i > 0) {
      EXPECT_GT(points[i].first, points[i - 1].first);
      EXPECT_GT(points[i].second, points[i - 1].second);
    }
    // The fraction of values up to there, give or take one bucket.
    const auto up_to =
        std::upper_bound(values.begin(), values.end(),
                         static_cast<std::uint64_t>(points[i].first * (1 + tolerance) + 1));
    EXPECT_NEAR(points[i].second,
                static_cast<double>(up_to - values.begin()) / static_cast<double>(values.size()),
                0.02);
  }
}

}  // namespace
}  // namespace lockflight::bench
