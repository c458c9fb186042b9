#include "lab/fiber/stack_pool.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <limits>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "support.hpp"

namespace lockflight::fiber {
namespace {

using testing::active;
using testing::kib;
using testing::mib;
using testing::resident_bytes;
using testing::sanitizer;

std::vector<stack> take_many(stack_pool& pool, std::size_t count) {
  std::vector<stack> stacks;
  stacks.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    stacks.push_back(pool.take());
  }
  return stacks;
}

/// True if madvise makes guard pages: since Linux 6.13.
[[nodiscard]] bool kernel_has_guard_pages() {
  constexpr int guard_install = 102;
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* const at = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const bool has = madvise(at, page, guard_install) == 0;
  munmap(at, page);
  return has;
}

void touch_top(const stack& each) {
  *const_cast<volatile std::byte*>(each.base() + each.bytes() - 1) = std::byte{1};
}

TEST(stack_pool, rounds_sizes_up_to_pages_and_to_the_minimum) {
  if (active != sanitizer::none) {
    EXPECT_EQ(stack_pool(1).stack_bytes(), 256 * kib);
    return;
  }
  EXPECT_EQ(stack_pool(0).stack_bytes(), stack_pool::min_stack_bytes);
  EXPECT_EQ(stack_pool(16 * kib).stack_bytes(), 16 * kib);
  EXPECT_EQ(stack_pool(16 * kib + 1).stack_bytes(), 20 * kib);
}

TEST(stack_pool, refuses_absurd_sizes) {
  constexpr std::size_t absurd = std::numeric_limits<std::size_t>::max();
  EXPECT_THROW(stack_pool pool(absurd), std::system_error);
}

TEST(stack_pool, says_why_the_kernel_refused) {
  stack_pool pool(std::size_t{1} << 44, guard::none);
  try {
    pool.take();
    FAIL() << "a stack of 16 TiB";
  } catch (const std::system_error& refused) {
    EXPECT_NE(std::string(refused.what()).find("cannot map"), std::string::npos) << refused.what();
    EXPECT_EQ(refused.code(), std::errc::not_enough_memory);
  }
  EXPECT_EQ(pool.live(), 0U);
}

TEST(stack_pool, every_byte_of_a_stack_is_usable_and_its_own) {
  for (const guard below : {guard::none, guard::page, guard::mapping}) {
    stack_pool pool(8 * kib, below);
    const std::vector<stack> stacks = take_many(pool, 100);
    for (std::size_t i = 0; i < stacks.size(); ++i) {
      std::fill_n(stacks[i].base(), stacks[i].bytes(), static_cast<std::byte>(i));
    }
    for (std::size_t i = 0; i < stacks.size(); ++i) {
      const auto mine = [i](std::byte found) { return found == static_cast<std::byte>(i); };
      EXPECT_TRUE(std::all_of(stacks[i].base(), stacks[i].base() + stacks[i].bytes(), mine));
    }
  }
}

TEST(stack_pool, hands_out_again_what_came_back_last) {
  stack_pool pool(16 * kib);
  stack first = pool.take();
  stack second = pool.take();
  EXPECT_EQ(pool.live(), 2U);
  std::byte* const places[] = {first.base(), second.base()};
  second = stack();
  first = stack();
  EXPECT_EQ(pool.live(), 0U);
  const stack again = pool.take();
  EXPECT_EQ(again.base(), places[0]);
  EXPECT_EQ(pool.take().base(), places[1]);
  EXPECT_EQ(pool.peak(), 2U);
}

TEST(stack_pool, a_moved_stack_goes_back_once) {
  stack_pool pool(16 * kib);
  stack one = pool.take();
  stack two = std::move(one);
  EXPECT_FALSE(one);  // NOLINT(bugprone-use-after-move): that it is empty is the promise
  EXPECT_TRUE(two);
  stack& same = two;
  two = std::move(same);
  EXPECT_TRUE(two);
  two = pool.take();
  EXPECT_EQ(pool.live(), 1U);
}

TEST(stack_pool, a_million_stacks_cost_no_memory_until_touched) {
  constexpr std::size_t count = 1'000'000;
  stack_pool pool(16 * kib, guard::none);
  const std::size_t before = resident_bytes();
  const std::vector<stack> stacks = take_many(pool, count);
  EXPECT_EQ(pool.live(), count);
  // The handles, the pool's list, and little else.
  EXPECT_LT(resident_bytes() - before, active == sanitizer::none ? 64 * mib : 256 * mib);
}

TEST(stack_pool, a_touched_stack_costs_one_page_and_trim_gives_it_back) {
  if (active == sanitizer::thread) {
    GTEST_SKIP() << "the thread sanitizer's shadow memory drowns what is measured";
  }
  constexpr std::size_t count = 10'000;
  stack_pool pool(16 * kib, guard::none);
  std::vector<stack> stacks = take_many(pool, count);
  const std::size_t before = resident_bytes();
  std::for_each(stacks.begin(), stacks.end(), touch_top);
  const std::size_t touched = resident_bytes() - before;
  EXPECT_GE(touched, count * 4 * kib);
  EXPECT_LT(touched, count * 5 * kib) << "huge pages, or whole stacks committed";
  stacks.resize(count / 2);
  EXPECT_EQ(pool.trim(), count / 2);
  EXPECT_LT(resident_bytes() - before, touched / 2 + 2 * mib);
}

TEST(stack_pool, more_guarded_stacks_than_mappings_allowed) {
  if (active != sanitizer::none) {
    GTEST_SKIP() << "about the kernel, not about us";
  }
  constexpr std::size_t count = 200'000;
  stack_pool pool(8 * kib, guard::page);
  try {
    EXPECT_EQ(take_many(pool, count).size(), count);
  } catch (const std::system_error& refused) {
    EXPECT_NE(std::string(refused.what()).find("vm.max_map_count"), std::string::npos)
        << refused.what();
    ASSERT_FALSE(kernel_has_guard_pages()) << refused.what();
    GTEST_SKIP() << "this kernel, before Linux 6.13, has no guard pages without mappings";
  }
}

TEST(stack_pool, says_which_limit_guard_mappings_meet) {
  if (active != sanitizer::none) {
    GTEST_SKIP() << "the sanitizers need mappings of their own meanwhile";
  }
  stack_pool pool(8 * kib, guard::mapping);
  std::vector<stack> stacks;
  stacks.reserve(1'000'000);
  std::string what;
  try {
    while (stacks.size() < stacks.capacity()) {
      stacks.push_back(pool.take());
    }
  } catch (const std::system_error& refused) {
    what = refused.what();
  }
  if (what.empty()) {
    GTEST_SKIP() << "this system allows millions of mappings";
  }
  EXPECT_NE(what.find("vm.max_map_count"), std::string::npos) << what;
  EXPECT_GT(stacks.size(), 10'000U);
}

TEST(stack_pool_death, guard_pages_fault) {
  if (active != sanitizer::none) {
    GTEST_SKIP() << "the sanitizers turn the fault into a report";
  }
  for (const guard below : {guard::page, guard::mapping}) {
    stack_pool pool(16 * kib, below);
    const stack one = pool.take();
    EXPECT_EXIT(*const_cast<volatile std::byte*>(one.base() - 1) = std::byte{1},
                ::testing::KilledBySignal(SIGSEGV), "");
  }
}

TEST(stack_pool_death, must_outlive_its_stacks) {
  EXPECT_DEATH(
      {
        stack kept;
        const stack_pool pool(16 * kib);
        kept = const_cast<stack_pool&>(pool).take();
        pool.~stack_pool();
      },
      "a stack pool ends while stacks of it are in use");
}

}  // namespace
}  // namespace lockflight::fiber
