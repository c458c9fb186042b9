#include "lab/fiber/fiber.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support.hpp"

namespace lockflight::fiber {
namespace {

using testing::active;
using testing::kib;
using testing::sanitizer;
using testing::witness;

class fiber_test : public ::testing::Test {
 protected:
  stack_pool pool{64 * kib};
};

TEST_F(fiber_test, ping_pong) {
  std::string trace;
  fiber one(pool.take(), [&] {
    for (int round = 0; round < 3; ++round) {
      trace += 'f';
      EXPECT_TRUE(fiber::inside());
      fiber::suspend();
    }
  });
  EXPECT_FALSE(one.done());
  EXPECT_EQ(trace, "");
  while (one.resume()) {
    EXPECT_FALSE(fiber::inside());
    trace += 'o';
  }
  EXPECT_EQ(trace, "fofofo");
  EXPECT_TRUE(one.done());
}

TEST_F(fiber_test, is_done_without_stack_or_body) {
  fiber none;
  EXPECT_TRUE(none.done());
  none.unwind();
  none.abandon();
  fiber idle(pool.take());
  EXPECT_TRUE(idle.done());
  idle.reset([] {});
  EXPECT_FALSE(idle.done());
  EXPECT_FALSE(idle.resume());
}

TEST_F(fiber_test, two_fibers_keep_their_locals) {
  std::array<std::uint64_t, 2> sums{};
  const auto body = [&sums](std::size_t which) {
    return [&sums, which] {
      std::uint64_t sum = which;
      double scaled = 0.5;
      for (std::uint64_t i = 1; i <= 1000; ++i) {
        sum += i * (which + 1);
        scaled *= which == 0 ? 1.5 : 0.75;
        fiber::suspend();
      }
      sums[which] = scaled > 1 ? sum : sum + 1;
    };
  };
  fiber first(pool.take(), body(0));
  fiber second(pool.take(), body(1));
  while (first.resume()) {
    second.resume();
  }
  EXPECT_FALSE(second.resume());
  EXPECT_EQ(sums[0], 500'500U);
  EXPECT_EQ(sums[1], 1'001'002U);
}

TEST_F(fiber_test, a_body_may_be_any_callable) {
  static int calls = 0;
  struct alignas(64) aligned {
    std::array<char, 128> payload{};
    void operator()() const {
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(this) % 64, 0U);
      ++calls;
    }
  };
  const auto move_only = [one = std::make_unique<int>(1)] {
    calls += *one;
    return *one;
  };
  fiber one(pool.take(), aligned{});
  one.resume();
  one.reset(+[] { ++calls; });
  one.resume();
  one.reset([&move_only] { move_only(); });
  one.resume();
  one.reset([owned = std::make_unique<int>(1)] { calls += *owned; });
  one.resume();
  EXPECT_EQ(calls, 4);
}

TEST_F(fiber_test, exceptions_come_out_of_resume) {
  bool destroyed = false;
  fiber one(pool.take(), [held = witness(destroyed)] {
    fiber::suspend();
    throw std::runtime_error("from inside");
  });
  EXPECT_TRUE(one.resume());
  try {
    one.resume();
    FAIL() << "the exception was lost";
  } catch (const std::runtime_error& thrown) {
    EXPECT_STREQ(thrown.what(), "from inside");
  }
  EXPECT_TRUE(one.done());
  EXPECT_TRUE(destroyed);
  one.reset([] {});
  EXPECT_FALSE(one.resume());
}

// Without an exception state of its own for each fiber, the rethrow would find the other's.
TEST_F(fiber_test, fibers_may_suspend_inside_catch_blocks) {
  std::vector<std::string> caught(2);
  const auto body = [&caught](std::size_t which) {
    return [&caught, which] {
      try {
        try {
          throw std::runtime_error(std::to_string(which));
        } catch (const std::runtime_error&) {
          fiber::suspend();
          throw;
        }
      } catch (const std::runtime_error& again) {
        fiber::suspend();
        caught[which] = again.what();
      }
    };
  };
  fiber first(pool.take(), body(0));
  fiber second(pool.take(), body(1));
  for (int round = 0; round < 3; ++round) {
    try {
      throw std::logic_error("owner");
    } catch (const std::logic_error& own) {
      first.resume();
      EXPECT_EQ(std::uncaught_exceptions(), 0);
      second.resume();
      EXPECT_STREQ(own.what(), "owner");
      EXPECT_THROW(throw, std::logic_error);
    }
  }
  EXPECT_TRUE(first.done() && second.done());
  EXPECT_EQ(caught, (std::vector<std::string>{"0", "1"}));
}

TEST_F(fiber_test, a_hundred_thousand_live_fibers) {
  // The sanitizers keep megabytes for each, and the thread sanitizer has room for some 8,000.
  const std::size_t count = active == sanitizer::none ? 100'000 : 1'000;
  stack_pool small(8 * kib, guard::none);
  std::vector<fiber> all;
  all.reserve(count);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    all.emplace_back(small.take(), [&sum, i] {
      fiber::suspend();
      sum += i;
      fiber::suspend();
    });
  }
  for (int round = 0; round < 3; ++round) {
    for (fiber& each : all) {
      EXPECT_EQ(each.resume(), round < 2);
    }
  }
  EXPECT_EQ(sum, count * (count - 1) / 2);
}

TEST_F(fiber_test, fibers_nest) {
  constexpr int deepest = 50;
  std::vector<int> trace;
  struct level {
    stack_pool& pool;
    std::vector<int>& trace;
    int depth;
    void operator()() const {
      fiber inner;
      if (depth < deepest) {
        inner = fiber(pool.take(), level{pool, trace, depth + 1});
        EXPECT_TRUE(inner.resume());
      }
      trace.push_back(depth);
      fiber::suspend();
      trace.push_back(-depth);
      if (depth < deepest) {
        EXPECT_FALSE(inner.resume());
      }
    }
  };
  fiber outer(pool.take(), level{pool, trace, 1});
  EXPECT_TRUE(outer.resume());
  EXPECT_FALSE(fiber::inside());
  EXPECT_EQ(trace.size(), static_cast<std::size_t>(deepest));
  EXPECT_EQ(trace.front(), deepest);
  EXPECT_FALSE(outer.resume());
  EXPECT_EQ(trace.back(), -deepest);
  EXPECT_EQ(trace.size(), 2U * deepest);
  EXPECT_EQ(pool.live(), 1U);
}

TEST_F(fiber_test, a_handle_moves_while_its_fiber_runs) {
  fiber there;
  fiber here(pool.take(), [&] {
    there = std::move(here);
    fiber::suspend();
  });
  EXPECT_TRUE(here.resume());
  EXPECT_TRUE(here.done());  // NOLINT(bugprone-use-after-move): a moved handle holds no fiber
  EXPECT_FALSE(there.resume());
}

TEST_F(fiber_test, goes_on_where_another_thread_resumes_it) {
  std::vector<std::thread::id> ids;
  fiber one(pool.take(), [&ids] {
    for (int round = 0; round < 3; ++round) {
      ids.push_back(std::this_thread::get_id());
      try {
        throw round;
      } catch (int) {
        fiber::suspend();
      }
    }
  });
  one.resume();
  std::thread([&one] {
    one.resume();
    EXPECT_FALSE(fiber::inside());
  }).join();
  one.resume();
  EXPECT_EQ(ids.at(0), ids.at(2));
  EXPECT_FALSE(one.resume());
}

TEST_F(fiber_test, threads_run_fibers_of_their_own) {
  const auto work = [](std::uint64_t& sum) {
    stack_pool own(64 * kib);
    std::vector<fiber> all;
    for (std::uint64_t i = 0; i < 20; ++i) {
      all.emplace_back(own.take(), [&sum, i] {
        for (std::uint64_t round = 0; round < 100; ++round) {
          sum += i;
          fiber::suspend();
        }
      });
    }
    for (std::uint64_t round = 0; round < 100; ++round) {
      for (fiber& each : all) {
        each.resume();
      }
    }
  };
  std::array<std::uint64_t, 2> sums{};
  std::thread other(work, std::ref(sums[1]));
  work(sums[0]);
  other.join();
  EXPECT_EQ(sums[0], 19'000U);
  EXPECT_EQ(sums[1], 19'000U);
}

TEST_F(fiber_test, the_smallest_stack_holds_a_throw) {
  stack_pool small(stack_pool::min_stack_bytes);
  fiber one(small.take(), [] {
    try {
      throw std::runtime_error("small");
    } catch (const std::exception&) {
      fiber::suspend();
    }
    throw std::runtime_error("out of it");
  });
  EXPECT_TRUE(one.resume());
  EXPECT_THROW(one.resume(), std::runtime_error);
  one.reset([] { fiber::suspend(); });
  one.resume();
  one.unwind();
}

// What a function that has returned left below the live stack, seen from where it is resumed.
[[gnu::noinline]] void leave_something_behind(int depth) {
  volatile std::uint64_t marks[64];
  for (volatile std::uint64_t& mark : marks) mark = 0x1234'5678'9abc'def0U;
  if (depth > 0) leave_something_behind(depth - 1);
}

TEST_F(fiber_test, what_is_free_of_a_stack_can_be_wiped) {
  if (active != sanitizer::none) GTEST_SKIP() << "a sanitizer keeps its own books of a stack";
  stack memory = pool.take();
  const std::byte* const base = memory.base();
  bool ended = false;
  fiber one(std::move(memory), [&] {
    leave_something_behind(8);
    fiber::suspend();
    ended = true;
  });
  one.resume();
  const std::byte* const live = one.live_stack().data();
  const auto is_zero = [](std::byte b) { return b == std::byte{0}; };
  EXPECT_FALSE(std::all_of(base, live, is_zero));
  const std::vector<std::byte> before(one.live_stack().begin(), one.live_stack().end());
  one.wipe_free();
  EXPECT_TRUE(std::all_of(base, live, is_zero));
  EXPECT_TRUE(std::equal(before.begin(), before.end(), one.live_stack().begin()));
  EXPECT_LT(one.live_stack().size(), one.image().size());
  EXPECT_FALSE(one.resume());
  EXPECT_TRUE(ended);
}

}  // namespace
}  // namespace lockflight::fiber
