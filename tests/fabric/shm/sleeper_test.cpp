// A waiter that sleeps several times at a bell, armed all the while.
#include "lockflight/fabric/parking.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "support.hpp"

namespace lockflight::test {
namespace {

using shm::detail::bell;
using shm::detail::sleeper;

constexpr timespec for_ever{.tv_sec = 60, .tv_nsec = 0};
constexpr timespec shortly{.tv_sec = 0, .tv_nsec = 5'000'000};

TEST(sleeper, stays_armed_until_it_is_disarmed) {
  bell at;
  sleeper waits;
  waits.arm(at);
  EXPECT_FALSE(waits.sleep_again(shortly)) << "nobody has rung";
  EXPECT_TRUE(waits.armed());
  EXPECT_EQ(at.parked.load(), 1u);
  waits.disarm();
  EXPECT_EQ(at.parked.load(), 0u);
}

TEST(sleeper, hears_a_ring_before_its_sleep_once) {
  bell at;
  sleeper waits;
  waits.arm(at);
  at.ring();
  EXPECT_TRUE(waits.sleep_again(for_ever)) << "it has rung since arm()";
  EXPECT_FALSE(waits.sleep_again(shortly)) << "and not since then";
  at.ring();
  at.ring();
  EXPECT_TRUE(waits.sleep_again(for_ever));
}

// A rank that waits in the queue of a lock sleeps on its queue node. Other ranks write to the words
// of the locks at the same rank, and must not wake it each time.
TEST(bells, those_of_queue_nodes_are_their_own) {
  shm::detail::bells of_rank;
  sleeper waits;
  const std::uint32_t own_node = rma::line_words;
  waits.arm(of_rank.of(own_node));
  for (std::uint32_t line = rma::most_queue_nodes + 1; line < 100; ++line)
    of_rank.of(line * rma::line_words).ring();
  EXPECT_FALSE(waits.sleep_again(shortly));
  of_rank.of(own_node + 1).ring();
  EXPECT_TRUE(waits.sleep_again(for_ever));
  of_rank.ring_all();
  EXPECT_TRUE(waits.sleep_again(for_ever));
}

// A bell that asks for fences is not quiet, and has no sleeper for that.
TEST(bells, ask_for_fences_beside_their_sleepers) {
  shm::detail::bells of_rank;
  bell& at = of_rank.of(rma::line_words);
  EXPECT_TRUE(at.is_quiet());
  of_rank.fence_stores();
  EXPECT_FALSE(at.is_quiet());
  at.ring();
  EXPECT_EQ(at.rung.load(), 0u) << "nobody sleeps";
  sleeper waits;
  waits.arm(at);
  at.ring();
  EXPECT_TRUE(waits.sleep_again(for_ever));
  waits.disarm();
  EXPECT_FALSE(at.is_quiet());
  EXPECT_EQ(at.parked.load(), bell::stores_fence);
}

// A write that a read of the cell misses rings after the ticket of the next sleep.
TEST(sleeper, misses_no_write) {
  bell at;
  std::atomic<int> cell = 0;
  constexpr int writes = 20'000;
  std::jthread writer([&] {
    for (int i = 1; i <= writes; ++i) {
      cell.store(i, std::memory_order_seq_cst);
      at.ring();
      if (i % 64 == 0) std::this_thread::yield();
    }
  });
  sleeper waits;
  waits.arm(at);
  const auto start = clock::now();
  while (cell.load(std::memory_order_acquire) < writes)
    static_cast<void>(waits.sleep_again(for_ever));
  EXPECT_LT(clock::now() - start, long_enough);
}

}  // namespace
}  // namespace lockflight::test
