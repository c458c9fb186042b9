// Holders, waiters, readers and those that repair are killed; the others go on.
#include <sys/mman.h>

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

TEST(DomainDeaths, AKilledHolderFreesTheLockAndTheNextOneIsTold) {
  const own_domain own;
  auto d = domain::open(own.name());
  named_mutex m(d, "jobs");
  m.lock();
  const auto token = m.token();
  EXPECT_FALSE(m.owner_died());
  m.unlock();
  child holder([&] {
    named_mutex theirs(domain::attach(own.name()), "jobs");
    theirs.lock();
    raise(SIGKILL);
    return 0;
  });
  EXPECT_EQ(holder.wait(), 1000 + SIGKILL);
  const auto before = clock::now();
  m.lock();
  EXPECT_LT(clock::now() - before, 500ms);
  EXPECT_TRUE(m.owner_died());
  EXPECT_EQ(m.token(), token + 2);
  m.unlock();
  m.lock();
  EXPECT_TRUE(m.owner_died()) << "nobody has called mark_consistent";
  m.mark_consistent();
  EXPECT_FALSE(m.owner_died());
  m.unlock();
  m.lock();
  EXPECT_FALSE(m.owner_died());
  m.unlock();
  static_cast<void>(d.sweep());
  EXPECT_EQ(d.participants().size(), 1u);
}

// The head of the queue is also the waiter that looks whether the others live.
TEST(DomainDeaths, AKilledHeadOfTheQueueDelaysTheNextOneForAMomentOnly) {
  const own_domain own;
  auto d = domain::open(own.name());
  named_mutex m(d, "jobs");
  constexpr int times = 5;
  std::chrono::nanoseconds delays{0};
  for (int i = 0; i < times; ++i) {
    m.lock();
    auto& had_at = shared_words<std::atomic<std::int64_t>>();
    had_at = 0;
    const auto waits = [&] {
      named_mutex theirs(domain::attach(own.name()), "jobs");
      theirs.lock();
      had_at = clock::now().time_since_epoch().count();
      theirs.unlock();
      return 0;
    };
    child head(waits);
    await_waiters(d, 1);
    child next(waits);
    await_waiters(d, 2);
    std::this_thread::sleep_for(150ms);
    head.kill();
    EXPECT_EQ(head.wait(), 1000 + SIGKILL);
    const auto free_since = clock::now();
    m.unlock();
    EXPECT_EQ(next.wait(), 0);
    delays += clock::time_point(clock::duration(had_at)) - free_since;
  }
  EXPECT_LT(delays / times, 250ms);
}

TEST(DomainDeaths, AWaiterSeesThatTheHolderDied) {
  const own_domain own;
  auto d = domain::open(own.name());
  auto& held = shared_words<std::atomic<int>>();
  child holder([&] {
    named_mutex theirs(domain::attach(own.name()), "jobs");
    theirs.lock();
    held = 1;
    pause();
    return 0;
  });
  while (held == 0) usleep(1000);
  std::thread killer([&] {
    std::this_thread::sleep_for(50ms);
    holder.kill();
    holder.wait();
  });
  named_mutex m(d, "jobs");
  EXPECT_FALSE(m.try_lock());
  EXPECT_FALSE(m.try_lock_for(1ms));
  m.lock();
  EXPECT_TRUE(m.owner_died());
  m.unlock();
  killer.join();
}

// Processes that come and go in haste while somebody examines all slots: nobody is taken for dead.
TEST(DomainDeaths, NobodyIsTakenForDeadWhoComesAndGoes) {
  const own_domain own;
  const auto d = domain::open(own.name());
  auto& wrong = shared_words<std::atomic<int>>();
  auto& came = shared_words<std::atomic<int>>();
  auto& over = shared_words<std::atomic<int>>();
  std::vector<child> all;
  for (int i = 0; i < 2; ++i)
    all.emplace_back([&] {
      while (over == 0) {
        auto here = domain::attach(own.name());
        static_cast<void>(here.participants());
        static_cast<void>(here.sweep());
      }
      return 0;
    });
  for (int i = 0; i < 4; ++i)
    all.emplace_back([&] {
      while (over == 0) {
        child one([&] {
          named_mutex m(domain::attach(own.name()), "a");
          m.lock();
          if (m.owner_died()) ++wrong;
          m.unlock();
          ++came;
          exit(0);  // gives the slot back
          return 1;
        });
        if (one.wait() != 0) return 1;
      }
      return 0;
    });
  constexpr int enough = 100;
  const auto until = clock::now() + 60s;
  std::this_thread::sleep_for(2s);
  while (came <= enough && clock::now() < until) std::this_thread::sleep_for(10ms);
  over = 1;
  for (child& each : all) EXPECT_EQ(each.wait(), 0);
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(came, enough) << "hardly anybody came";
}

/// How long `waiters` processes take that get a lock one after the other, when its holder ends.
std::chrono::nanoseconds time_of_waiters(int waiters, bool holder_dies) {
  const own_domain own;
  const auto d = domain::open(own.name());
  auto& step = shared_words<std::atomic<int>>();
  child holder([&] {
    named_mutex m(domain::attach(own.name()), "a");
    m.lock();
    step = 1;
    while (step != 2) usleep(1000);
    if (holder_dies) raise(SIGKILL);
    m.unlock();
    return 0;
  });
  while (step != 1) usleep(1000);
  std::vector<child> all;
  for (int i = 0; i < waiters; ++i)
    all.emplace_back([&] {
      named_mutex m(domain::attach(own.name()), "a");
      m.lock();
      m.unlock();
      exit(0);
      return 0;
    });
  await_waiters(d, all.size());
  const auto before = clock::now();
  step = 2;
  for (child& each : all) EXPECT_EQ(each.wait(), 0);
  return clock::now() - before;
}

// One death among many waiters: each of them gets the lock, in time.
TEST(DomainDeaths, ManyWaitersOutliveTheirHolder) {
  constexpr int waiters = 60;
  const auto without_a_death = time_of_waiters(waiters, false);
  EXPECT_LT(time_of_waiters(waiters, true), 3s + without_a_death);
}

TEST(DomainDeaths, HundredsOfKillsAtRandomMoments) {
  struct state {
    std::atomic<int> inside[2], readers[2];
    std::atomic<std::uint64_t> last[2], wrong, rounds;
  };
  auto& s = shared_words<state>();
  const own_domain own;
  auto d = domain::open(own.name(), {.slots = 12});
  const auto work = [&] {
    auto here = domain::attach(own.name());
    std::mt19937 random(static_cast<unsigned>(getpid()));
    named_mutex a(here, "a");
    named_shared_mutex b(here, "b");
    // `inside` counts the living alone: a process adds itself with its pid and is taken off by who
    // finds that it died, so it holds the pid of the holder.
    const auto write = [&](auto& lock, int i) {
      const int before = s.inside[i].exchange(getpid());
      if (before != 0 && !lock.owner_died()) ++s.wrong;
      const auto last = s.last[i].exchange(lock.token());
      if (last >= lock.token()) ++s.wrong;
      if (random() % 8 == 0) usleep(static_cast<useconds_t>(random() % 200));
      if (s.inside[i].exchange(0) != getpid()) ++s.wrong;
      if (lock.owner_died()) lock.mark_consistent();
    };
    for (;; ++s.rounds) {
      switch (random() % 5) {
        case 0: {
          const std::scoped_lock hold(a);
          write(a, 0);
          break;
        }
        case 1: {
          const std::scoped_lock hold(b);
          write(b, 1);
          break;
        }
        case 2: {
          const std::shared_lock hold(b);
          if (s.inside[1] != 0 && !b.owner_died()) ++s.wrong;
          break;
        }
        case 3:
          if (a.try_lock_for(std::chrono::microseconds(random() % 300))) {
            write(a, 0);
            a.unlock();
          }
          break;
        default:
          if (b.try_lock_for(std::chrono::microseconds(random() % 300))) {
            write(b, 1);
            b.unlock();
          }
      }
    }
    return 0;
  };
  std::mt19937 random(4711);
  std::vector<child> children;
  for (int i = 0; i < 4; ++i) children.emplace_back(work);
  const auto until = clock::now() + 4s;
  int kills = 0;
  while (clock::now() < until) {
    usleep(static_cast<useconds_t>(random() % 40'000));
    child& one = children[random() % children.size()];
    one.kill();
    EXPECT_EQ(one.wait(), 1000 + SIGKILL);
    new (&one) child(work);
    ++kills;
  }
  const auto rounds = s.rounds.load();
  children.clear();
  EXPECT_EQ(s.wrong, 0u);
  EXPECT_GT(kills, 80);
  named_mutex a(d, "a");
  named_shared_mutex b(d, "b");
  ASSERT_TRUE(a.try_lock_for(5s));
  ASSERT_TRUE(b.try_lock_for(5s));
  a.unlock();
  b.unlock();
  d.sweep();
  EXPECT_EQ(d.participants().size(), 1u);
  EXPECT_GT(rounds, 10u * static_cast<unsigned>(kills)) << "they hardly ever got a lock";
}

}  // namespace
}  // namespace lockflight::test
