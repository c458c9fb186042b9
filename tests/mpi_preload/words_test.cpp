#include "mpi_preload/words.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace lockflight::mpi_preload {
namespace {

TEST(WordRanges, TheLowestFirstAndNeverTwice) {
  word_ranges words(10, 20);
  EXPECT_EQ(words.take(4), 10U);
  EXPECT_EQ(words.take(6), 14U);
  EXPECT_EQ(words.take(1), std::nullopt);
}

TEST(WordRanges, NoRangeIsLongEnough) {
  word_ranges words(0, 8);
  for (std::uint32_t at = 0; at < 8; at += 2) ASSERT_EQ(words.take(2), at);
  words.give_back(0, 2);
  words.give_back(4, 2);
  EXPECT_EQ(words.take(3), std::nullopt);  // four are free, no three of them together
}

TEST(WordRanges, NeighboursBecomeOneAgainInAnyOrder) {
  std::vector<std::uint32_t> order{0, 1, 2, 3};
  do {
    word_ranges words(0, 8);
    for (std::uint32_t at = 0; at < 8; at += 2) ASSERT_EQ(words.take(2), at);
    for (const std::uint32_t each : order) words.give_back(2 * each, 2);
    EXPECT_EQ(words.take(8), 0U);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(WordRanges, AgreesWithAMarkForEachWord) {
  constexpr std::uint32_t first = 3;
  constexpr std::uint32_t end = 67;
  struct range {
    std::uint32_t first, count;
  };
  std::mt19937 random(1);
  word_ranges words(first, end);
  std::vector<bool> used(end, false);
  std::vector<range> taken;
  const auto is_free = [&](std::uint32_t from, std::uint32_t count) {
    return from + count <= end && std::none_of(used.begin() + from, used.begin() + from + count,
                                               [](bool is) { return is; });
  };
  const auto mark = [&](const range& which, bool as) {
    std::fill_n(used.begin() + which.first, which.count, as);
  };
  for (int i = 0; i < 20'000; ++i) {
    if (taken.empty() || random() % 2 == 0) {
      const std::uint32_t count = 1 + static_cast<std::uint32_t>(random() % 9);
      std::uint32_t lowest = first;
      while (lowest < end && !is_free(lowest, count)) ++lowest;
      const auto got = words.take(count);
      ASSERT_EQ(got, lowest < end ? std::optional(lowest) : std::nullopt);
      if (!got) continue;
      taken.push_back({*got, count});
      mark(taken.back(), true);
    } else {
      std::swap(taken[random() % taken.size()], taken.back());
      words.give_back(taken.back().first, taken.back().count);
      mark(taken.back(), false);
      taken.pop_back();
    }
  }
}

}  // namespace
}  // namespace lockflight::mpi_preload
