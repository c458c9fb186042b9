// The queue of events: the earliest first, and of those at one moment the one pushed first.
#include "lab/sim/event_queue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace lockflight::sim {
namespace {

TEST(event_queue, is_empty_at_first) {
  const event_queue queue;
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.next(), ~time_ps{0});
}

TEST(event_queue, keeps_what_an_event_is_about) {
  event_queue queue;
  queue.push(7, happening::effect, event_queue::most_numbers - 1);
  const event out = queue.pop();
  EXPECT_EQ(out.at, 7);
  EXPECT_EQ(out.what, happening::effect);
  EXPECT_EQ(out.about, event_queue::most_numbers - 1);
}

TEST(event_queue, of_one_moment_the_first_pushed_comes_first) {
  event_queue queue;
  for (std::uint32_t i = 0; i < 100; ++i)
    queue.push(5, i % 2 == 0 ? happening::resume : happening::arrive, 99 - i);
  for (std::uint32_t i = 0; i < 100; ++i) EXPECT_EQ(queue.pop().about, 99 - i);
}

// Pushed and popped in turn, as a run does, against a sorted list.
TEST(event_queue, agrees_with_sorting) {
  struct expected {
    time_ps at;
    std::uint32_t about;
  };
  std::minstd_rand random(1);
  event_queue queue;
  std::vector<expected> sorted;
  std::uint32_t pushed = 0;
  for (int step = 0; step < 20'000; ++step) {
    if (sorted.empty() || random() % 5 < 3) {
      const time_ps at = random() % 64;
      queue.push(at, happening::resume, pushed);
      const auto place = std::upper_bound(sorted.begin(), sorted.end(), at,
                                          [](time_ps t, const expected& e) { return t < e.at; });
      sorted.insert(place, {at, pushed++});
    } else {
      ASSERT_EQ(queue.next(), sorted.front().at);
      ASSERT_EQ(queue.first().about, sorted.front().about);
      const event out = queue.pop();
      ASSERT_EQ(out.at, sorted.front().at);
      ASSERT_EQ(out.about, sorted.front().about);
      sorted.erase(sorted.begin());
    }
    ASSERT_EQ(queue.size(), sorted.size());
  }
}

}  // namespace
}  // namespace lockflight::sim
