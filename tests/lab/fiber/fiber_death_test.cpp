// Rules of the fibers that end the process when they are broken, and stacks that overflow.

#include <gtest/gtest.h>

#include <csignal>
#include <cstddef>

#include "lab/fiber/fiber.hpp"
#include "support.hpp"

namespace lockflight::fiber {
namespace {

using testing::active;
using testing::kib;
using testing::sanitizer;

class fiber_death : public ::testing::Test {
 protected:
  // In a process of its own, and not in a fork of this one: ThreadSanitizer takes fibers for
  // threads, and its records of other threads do not survive a fork.
  fiber_death() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  stack_pool pool{64 * kib};
};

// From 80 to 160 bytes of stack a level, whatever the compiler makes of it, and all touched.
[[gnu::noinline]] void recurse(std::size_t levels, bool suspend_at_the_end) {
  volatile std::byte local[64];
  local[levels % sizeof(local)] = std::byte{1};
  if (levels > 0) {
    recurse(levels - 1, suspend_at_the_end);
  } else if (suspend_at_the_end) {
    fiber::suspend();
  }
  local[0] = std::byte{2};
}

TEST_F(fiber_death, endless_recursion_meets_the_guard_page) {
  if (active != sanitizer::none) {
    GTEST_SKIP() << "the sanitizers turn the fault into a report";
  }
  for (const guard below : {guard::page, guard::mapping}) {
    stack_pool guarded(16 * kib, below);
    // A stack below it, which the overflow would run into unnoticed.
    const stack neighbour = guarded.take();
    fiber deep(guarded.take(), [] { recurse(1'000'000, false); });
    EXPECT_EXIT(deep.resume(), ::testing::KilledBySignal(SIGSEGV), "");
    deep.reset([] { recurse(50, true); });
    EXPECT_TRUE(deep.resume());
  }
}

TEST_F(fiber_death, an_overflow_without_a_guard_page_is_noticed_when_the_fiber_suspends) {
  if (active != sanitizer::none) {
    GTEST_SKIP() << "frames differ, and the sanitizers may see it first";
  }
  stack_pool unguarded(16 * kib, guard::none);
  const stack neighbours[] = {unguarded.take(), unguarded.take(), unguarded.take()};
  // From 23 to 46 KiB deep: into the neighbours.
  fiber deep(unguarded.take(), [] { recurse(300, true); });
  EXPECT_DEATH(deep.resume(), "overflowed its stack");
}

TEST_F(fiber_death, resuming_a_fiber_that_is_done) {
  fiber one(pool.take(), [] {});
  one.resume();
  EXPECT_DEATH(one.resume(), "resume.. of a fiber that is done");
  EXPECT_DEATH(fiber().resume(), "resume.. of a fiber that is done");
}

TEST_F(fiber_death, resuming_a_fiber_that_runs) {
  fiber one;
  one = fiber(pool.take(), [&one] { one.resume(); });
  EXPECT_DEATH(one.resume(), "resume.. of a fiber that runs");
}

TEST_F(fiber_death, dropping_a_fiber_that_runs) {
  fiber one;
  one = fiber(pool.take(), [&one] { one = fiber(); });
  EXPECT_DEATH(one.resume(), "cannot be unwound, abandoned, reset or destroyed");
}

TEST_F(fiber_death, taking_the_image_of_a_fiber_that_runs) {
  fiber one;
  one = fiber(pool.take(), [&one] { static_cast<void>(one.image()); });
  EXPECT_DEATH(one.resume(), "image.. of a fiber that runs");
  EXPECT_DEATH(fiber().restore({}), "restore.. of a fiber that runs or has no stack");
}

TEST_F(fiber_death, suspending_outside_a_fiber) {
  EXPECT_DEATH(fiber::suspend(), "suspend.. outside a fiber");
}

TEST_F(fiber_death, a_fiber_needs_a_stack) {
  EXPECT_DEATH(fiber(stack(), [] {}), "needs a stack");
  EXPECT_DEATH(fiber().reset([] {}), "without a stack");
}

TEST_F(fiber_death, a_destructor_that_waits_for_ever_is_no_hang) {
  struct waits {
    const bool* stop;
    ~waits() {
      while (!*stop) {
        fiber::suspend();
      }
    }
  };
  const volatile bool never = false;
  fiber one(pool.take(), [&never] {
    const waits local{const_cast<const bool*>(&never)};
    fiber::suspend();
  });
  one.resume();
  EXPECT_DEATH(one.unwind(), "waits for ever in a fiber that is being unwound");
  one.abandon();
}

}  // namespace
}  // namespace lockflight::fiber
