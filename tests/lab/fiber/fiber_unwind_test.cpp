// How runs end before their body does (unwinding, abandoning, starting over), or are taken back.

#include <gtest/gtest.h>
#include <malloc.h>

#include <cstddef>
#include <stdexcept>
#include <utility>
#include <vector>

#include "lab/fiber/fiber.hpp"
#include "support.hpp"

namespace lockflight::fiber {
namespace {

using testing::active;
using testing::kib;
using testing::mib;
using testing::resident_bytes;
using testing::sanitizer;
using testing::witness;

// Fewer where a start takes microseconds (address sanitizer) or most of a millisecond (thread).
std::size_t rounds_of(std::size_t full) {
  return active == sanitizer::none ? full : full / (active == sanitizer::address ? 20 : 500);
}

void expect_no_growth_since(std::size_t before) {
  if (active == sanitizer::thread) {
    return;  // its runtime itself keeps some hundred bytes of every fiber it ever saw
  }
  EXPECT_LT(resident_bytes(), before + (active == sanitizer::none ? 1 : 8) * mib);
}

class fiber_unwind_test : public ::testing::Test {
 protected:
  stack_pool pool{64 * kib};
};

TEST_F(fiber_unwind_test, unwinding_runs_destructors) {
  bool outer = false;
  bool inner = false;
  bool body = false;
  fiber one(pool.take(), [&, held = witness(body)] {
    const witness first(outer);
    [&inner] {
      const witness second(inner);
      EXPECT_FALSE(fiber::unwinding());
      fiber::suspend();
      ADD_FAILURE() << "ran on";
    }();
  });
  one.resume();
  EXPECT_FALSE(outer || inner || body);
  one.unwind();
  EXPECT_TRUE(outer && inner && body);
  EXPECT_TRUE(one.done());
}

TEST_F(fiber_unwind_test, unwinding_a_fiber_that_did_not_begin_destroys_its_body) {
  bool body = false;
  fiber one(pool.take(), [held = witness(body)] { ADD_FAILURE() << "ran"; });
  one.unwind();
  EXPECT_TRUE(body);
  EXPECT_TRUE(one.done());
}

TEST_F(fiber_unwind_test, destruction_assignment_and_reset_unwind) {
  bool destroyed = false;
  const auto body = [&destroyed] {
    const witness local(destroyed);
    fiber::suspend();
  };
  {
    fiber one(pool.take(), body);
    one.resume();
  }
  EXPECT_TRUE(std::exchange(destroyed, false));
  fiber two(pool.take(), body);
  two.resume();
  two.reset(body);
  EXPECT_TRUE(std::exchange(destroyed, false));
  two.resume();
  two = fiber();
  EXPECT_TRUE(destroyed);
  EXPECT_EQ(pool.live(), 0U);
}

TEST_F(fiber_unwind_test, destructors_may_suspend_while_they_are_unwound) {
  struct releases {
    int* steps;
    ~releases() {
      EXPECT_TRUE(fiber::unwinding());
      fiber::suspend();
      ++*steps;
    }
  };
  int steps = 0;
  fiber one(pool.take(), [&steps] {
    const releases first{&steps};
    const releases second{&steps};
    fiber::suspend();
  });
  one.resume();
  one.unwind();
  EXPECT_EQ(steps, 2);
}

TEST_F(fiber_unwind_test, a_swallowed_unwinding_is_thrown_anew) {
  int swallowed = 0;
  fiber one(pool.take(), [&swallowed] {
    for (; swallowed < 5; ++swallowed) {
      try {
        fiber::suspend();
      } catch (...) {
      }
    }
  });
  one.resume();
  one.unwind();
  EXPECT_EQ(swallowed, 5);
  EXPECT_TRUE(one.done());
}

TEST_F(fiber_unwind_test, another_exception_comes_out_of_unwind) {
  fiber one(pool.take(), [] {
    try {
      fiber::suspend();
    } catch (...) {
      throw std::runtime_error("while cleaning up");
    }
  });
  one.resume();
  EXPECT_THROW(one.unwind(), std::runtime_error);
  EXPECT_TRUE(one.done());
}

TEST_F(fiber_unwind_test, abandoning_destroys_the_body_and_nothing_on_the_stack) {
  bool local = false;
  bool body = false;
  fiber one(pool.take(), [&local, held = witness(body)] {
    const witness first(local);
    fiber::suspend();
  });
  one.resume();
  one.abandon();
  EXPECT_TRUE(one.done());
  EXPECT_TRUE(body);
  EXPECT_FALSE(local);
  bool ran = false;
  one.reset([&ran] { ran = true; });
  EXPECT_FALSE(one.resume());
  EXPECT_TRUE(ran);
}

// Frames of several sizes with buffers in them, so that the remains of an abandoned one (its
// poison, for the address sanitizer) would disturb the next.
void suspend_below(std::size_t depth) {
  volatile char buffer[100] = {};
  buffer[depth % sizeof(buffer)] = 'x';
  if (depth == 0) {
    fiber::suspend();
  } else {
    suspend_below(depth - 1);
  }
  buffer[0] = 'y';
}

TEST_F(fiber_unwind_test, a_million_resets_of_unfinished_fibers_leak_nothing) {
  const std::size_t rounds = rounds_of(1'000'000);
  fiber one(pool.take());
  const auto round = [&one](std::size_t i) {
    one.reset([i] { suspend_below(i % 8); });
    EXPECT_TRUE(one.resume());
    one.abandon();
  };
  for (std::size_t i = 0; i < 1000; ++i) {
    round(i);
  }
  const std::size_t before = resident_bytes();
  [[maybe_unused]] const std::size_t heap_before = ::mallinfo2().uordblks;
  for (std::size_t i = 0; i < rounds; ++i) {
    round(i);
  }
  EXPECT_EQ(::mallinfo2().uordblks, heap_before);
  expect_no_growth_since(before);
  EXPECT_EQ(pool.peak(), 1U);
}

TEST_F(fiber_unwind_test, many_resets_with_unwinding_leak_nothing) {
  std::size_t destroyed = 0;
  struct counted {
    std::size_t* count;
    ~counted() { ++*count; }
  };
  const std::size_t rounds = rounds_of(100'000);
  fiber one(pool.take());
  std::size_t before = 0;
  for (std::size_t i = 0; i < rounds; ++i) {
    one.reset([&destroyed, i] {
      const counted local{&destroyed};
      suspend_below(i % 8);
    });
    EXPECT_TRUE(one.resume());
    if (i == rounds / 10) {
      before = resident_bytes();
    }
  }
  one.unwind();
  EXPECT_EQ(destroyed, rounds);
  expect_no_growth_since(before);
}

TEST_F(fiber_unwind_test, an_image_brings_a_fiber_back_to_its_moment) {
  if (active != sanitizer::none) {
    GTEST_SKIP() << "documented: the sanitizers keep their own books of a stack";
  }
  int seen = 0;
  fiber one(pool.take(), [&seen] {
    for (int local = 1; local <= 4; ++local) {
      seen = local;
      suspend_below(static_cast<std::size_t>(local));
    }
  });
  const auto copy = [&one] {
    const auto image = one.image();
    return std::vector<std::byte>(image.begin(), image.end());
  };
  const auto run_out = [&] {
    int resumes = 1;
    while (one.resume()) {
      ++resumes;
    }
    EXPECT_EQ(seen, 4);
    return resumes;
  };
  const auto at_start = copy();
  one.resume();
  one.resume();
  const auto in_second = copy();
  EXPECT_EQ(run_out(), 3);
  const auto at_end = copy();
  for (int round = 0; round < 3; ++round) {
    one.restore(in_second);
    EXPECT_FALSE(one.done());
    EXPECT_EQ(run_out(), 3);
    one.restore(at_start);
    EXPECT_EQ(run_out(), 5);
    one.restore(in_second);
    one.restore(at_end);
    EXPECT_TRUE(one.done());
  }
  one.restore(in_second);
  one.unwind();
  EXPECT_TRUE(one.done());
}

TEST_F(fiber_unwind_test, unwinding_reaches_fibers_on_the_stack_of_fibers) {
  bool inner_destroyed = false;
  fiber outer(pool.take(), [&] {
    fiber inner(pool.take(), [&] {
      const witness local(inner_destroyed);
      fiber::suspend();
    });
    inner.resume();
    fiber::suspend();
  });
  outer.resume();
  EXPECT_EQ(pool.live(), 2U);
  outer.unwind();
  EXPECT_TRUE(inner_destroyed);
  EXPECT_EQ(pool.live(), 1U);
}

}  // namespace
}  // namespace lockflight::fiber
