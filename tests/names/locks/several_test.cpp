// named_locks: several names at once, all or none, without deadlock.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <random>
#include <shared_mutex>
#include <thread>

#include "tests/names/support.hpp"

namespace lockflight::test {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;
using strings = std::vector<std::string>;

class DomainSeveral : public testing::Test {
 protected:
  [[nodiscard]] bool is_free(const std::string& name) {
    bool free = false;
    std::thread([&] {
      named_mutex m(in_, name);
      free = m.try_lock();
      if (free) m.unlock();
    }).join();
    return free;
  }

  own_domain own_;
  domain in_ = domain::open(own_.name());
};

TEST_F(DomainSeveral, TheyAreAcquiredAndReleasedTogether) {
  named_locks all(in_, {"b", "a", "c"});
  EXPECT_FALSE(all.is_held());
  {
    const std::scoped_lock hold(all);
    EXPECT_TRUE(all.is_held());
    for (const char* const name : {"a", "b", "c"}) EXPECT_FALSE(is_free(name));
    EXPECT_EQ(all.names(), (strings{"a", "b", "c"}));
    for (const std::uint64_t each : all.tokens()) EXPECT_GT(each, 0u);
    EXPECT_TRUE(all.still_valid());
    EXPECT_EQ(all.valid_for(), std::chrono::nanoseconds::max());
    EXPECT_REFUSED(held, "holds it already", all.lock());
  }
  for (const char* const name : {"a", "b", "c"}) EXPECT_TRUE(is_free(name));
  EXPECT_REFUSED(not_held, "'a'", all.unlock());
  const std::shared_lock shared(all);
  named_shared_mutex reads(in_, "b");
  std::thread([&] {
    EXPECT_TRUE(reads.try_lock_shared());
    reads.unlock_shared();
  }).join();
  EXPECT_FALSE(is_free("b"));
}

TEST_F(DomainSeveral, AllOrNoneInTime) {
  child holder([&] {
    named_mutex b(in_, "b");
    b.lock();
    pause();
    return 0;
  });
  while (is_free("b")) std::this_thread::sleep_for(1ms);
  named_locks all(in_, {"a", "b", "c"});
  EXPECT_FALSE(all.try_lock());
  EXPECT_TRUE(is_free("a"));
  const auto before = clock::now();
  EXPECT_FALSE(all.try_lock_for(100ms));
  EXPECT_GE(clock::now() - before, 100ms);
  EXPECT_LT(clock::now() - before, 2s);
  EXPECT_TRUE(is_free("a"));
  EXPECT_FALSE(all.is_held());
  EXPECT_FALSE(all.owner_died());
  std::thread kills([&] {
    await_waiters(in_, 1);
    EXPECT_FALSE(is_free("a")) << "it waits for b while it holds a";
    holder.kill();
  });
  EXPECT_TRUE(all.try_lock_for(20s));
  kills.join();
  EXPECT_TRUE(all.owner_died());
  all.mark_consistent();
  EXPECT_FALSE(all.owner_died());
  all.unlock();
}

TEST_F(DomainSeveral, AnInterruptedAcquireHoldsNothing) {
  child holder([&] {
    named_mutex b(in_, "b");
    b.lock();
    pause();
    return 0;
  });
  while (is_free("b")) std::this_thread::sleep_for(1ms);
  named_locks all(in_, {"a", "b"});
  std::string awaited;
  named_control(all).interrupt_with([&] {
    awaited = all.awaited();
    return true;
  });
  EXPECT_REFUSED(interrupted, "'b'", all.lock());
  EXPECT_EQ(awaited, "b");
  EXPECT_FALSE(all.is_held());
  EXPECT_TRUE(is_free("a"));
}

TEST_F(DomainSeveral, WhatIsRefused) {
  EXPECT_REFUSED(invalid, "lock 'a' twice (accepted: each name once)",
                 named_locks(in_, {"a", "b", "a"}));
  EXPECT_REFUSED(invalid, "one name or more", named_locks(in_, {}));
  EXPECT_REFUSED(invalid, "1 to 255", named_locks(in_, {"a", ""}));
  named_semaphore units(in_, "s", 2);
  units.acquire();
  EXPECT_REFUSED(disagrees, "semaphore of 2 units", named_locks(in_, {"a", "s"}));
}

// Processes take random sets of names in random orders, and are killed.
TEST_F(DomainSeveral, OverlappingSetsDoNotDeadlock) {
  const strings names{"a", "b", "c", "d"};
  auto& rounds = shared_words<std::atomic<int>>();
  const auto work = [&](unsigned seed) {
    std::mt19937 random(seed);
    const domain in = domain::open(own_.name());
    while (true) {
      strings mine = names;
      std::shuffle(mine.begin(), mine.end(), random);
      mine.resize(2 + random() % 2);
      named_locks all(in, mine);
      all.lock();
      ++rounds;
      all.unlock();
    }
    return 0;
  };
  std::vector<child> all;
  for (unsigned i = 0; i < 4; ++i) all.emplace_back([&, i] { return work(i); });
  for (unsigned i = 0; i < 20; ++i) {
    const int before = rounds;
    while (rounds < before + 20) std::this_thread::sleep_for(1ms);
    all[i % 4].kill();
    EXPECT_EQ(all[i % 4].wait(), 1000 + SIGKILL);
    all[i % 4] = child([&, i] { return work(100 + i); });
  }
  for (child& each : all) {
    each.kill();
    EXPECT_EQ(each.wait(), 1000 + SIGKILL);
  }
  named_locks last(in_, names);
  EXPECT_TRUE(last.try_lock_for(10s));
  last.unlock();
}

}  // namespace
}  // namespace lockflight::test
