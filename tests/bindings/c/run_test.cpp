// Locks and words through the C interface, on shared memory: threads and processes.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "lockflight/lock/all.hpp"
#include "tests/bindings/c/support.hpp"
#include "tests/lock/subjects.hpp"

namespace lockflight::test {
namespace {

constexpr int ranks = 4;
constexpr std::uint64_t rounds = under_sanitizer ? 100 : 500;

/// Of the lock table and the baselines.
std::vector<std::string> locks_that(bool share) {
  std::vector<std::string> names;
  lock::all::for_each([&]<template <class> class Lock>(lock::family<Lock>) {
    const lock::facts& about = Lock<shm::port>::about;
    if (!share || about.what == lock::kind::rw) names.emplace_back(about.name);
  });
  if (!share) names.emplace_back("pthread-mutex");
  names.emplace_back("pthread-rwlock");
  return names;
}

class OnThreadsAndProcesses : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    // ThreadSanitizer does not see across processes.
    if (under_tsan && !threads()) GTEST_SKIP() << "processes, under ThreadSanitizer";
  }
  [[nodiscard]] static bool threads() { return GetParam(); }
  [[nodiscard]] static lockflight_config config(const char* levels = nullptr) {
    return {.ranks = ranks, .levels = levels, .threads = threads() ? 1 : 0};
  }
};

INSTANTIATE_TEST_SUITE_P(Capi, OnThreadsAndProcesses, testing::Bool(),
                         [](const auto& of) { return of.param ? "threads" : "processes"; });

/// Adds one to both words of a pair in steps; another participant that is in sees them differ, or
/// an increment is lost.
void add_one(lockflight_words* pair) {
  std::array<std::uint64_t, 2> seen{};
  fine(lockflight_get_now(pair, 0, 0, &seen[0]), "get");
  fine(lockflight_get_now(pair, 0, 1, &seen[1]), "get");
  require(seen[0] == seen[1], "a writer shares the lock");
  fine(lockflight_put_now(pair, 0, 0, seen[0] + 1), "put");
  fine(lockflight_put_now(pair, 0, 1, seen[0] + 1), "put");
}

void require_whole(lockflight_words* pair) {
  std::array<std::uint64_t, 2> seen{};
  fine(lockflight_get_now(pair, 0, 0, &seen[0]), "get");
  fine(lockflight_get_now(pair, 0, 1, &seen[1]), "get");
  require(seen[0] == seen[1], "a reader shares the lock with a writer");
}

TEST_P(OnThreadsAndProcesses, EveryLockExcludes) {
  for (const std::string& of : locks_that(/*share=*/false)) {
    SCOPED_TRACE(of);
    run(config("2x2"), [name = of.c_str()](lockflight_participant* me) {
      lockflight_mutex* mutex = nullptr;
      lockflight_words* pair = nullptr;
      const lockflight_lock_options options{.name = name, .home = ranks - 1};
      fine(lockflight_mutex_create(me, &options, &mutex), "create");
      fine(lockflight_words_create(me, 2, &pair), "words");
      for (std::uint64_t i = 0; i < rounds; ++i) {
        // Every other time by trying, which may fail for ever only if no holder ever releases.
        int code = i % 2 == 0 ? lockflight_mutex_lock(mutex) : lockflight_mutex_try_lock(mutex);
        if (code == LOCKFLIGHT_BUSY) code = lockflight_mutex_lock(mutex);
        fine(code, "lock");
        add_one(pair);
        fine(lockflight_mutex_unlock(mutex), "unlock");
      }
      fine(lockflight_barrier(me), "barrier");
      std::uint64_t sum = 0;
      fine(lockflight_get_now(pair, 0, 1, &sum), "get");
      require(sum == ranks * rounds, "additions were lost");
    });
  }
}

TEST_P(OnThreadsAndProcesses, EverySharedLockKeepsReadersFromWriters) {
  for (const std::string& of : locks_that(/*share=*/true)) {
    SCOPED_TRACE(of);
    run(config("2x2"), [name = of.c_str()](lockflight_participant* me) {
      lockflight_shared_mutex* mutex = nullptr;
      lockflight_words* pair = nullptr;
      const lockflight_lock_options options{.name = name};
      fine(lockflight_shared_mutex_create(me, &options, &mutex), "create");
      fine(lockflight_words_create(me, 2, &pair), "words");
      const auto self = static_cast<std::uint64_t>(lockflight_rank(me));
      for (std::uint64_t i = 0; i < rounds; ++i) {
        if ((i + self) % 4 == 0) {
          int code = lockflight_shared_mutex_try_lock(mutex);
          if (code == LOCKFLIGHT_BUSY) code = lockflight_shared_mutex_lock(mutex);
          fine(code, "lock");
          add_one(pair);
          fine(lockflight_shared_mutex_unlock(mutex), "unlock");
        } else {
          int code = lockflight_shared_mutex_try_lock_shared(mutex);
          if (code == LOCKFLIGHT_BUSY) code = lockflight_shared_mutex_lock_shared(mutex);
          fine(code, "lock_shared");
          require_whole(pair);
          fine(lockflight_shared_mutex_unlock_shared(mutex), "unlock_shared");
        }
      }
      fine(lockflight_barrier(me), "barrier");
      std::uint64_t sum = 0;
      fine(lockflight_get_now(pair, 0, 1, &sum), "get");
      require(sum == ranks * rounds / 4, "additions were lost");
    });
  }
}

TEST_P(OnThreadsAndProcesses, WhoTriesFindsALockBusy) {
  run(config(), [](lockflight_participant* me) {
    lockflight_mutex* mutex = nullptr;
    lockflight_shared_mutex* shared = nullptr;
    fine(lockflight_mutex_create(me, nullptr, &mutex), "create");
    fine(lockflight_shared_mutex_create(me, nullptr, &shared), "create");
    if (lockflight_rank(me) == 0) {
      fine(lockflight_mutex_lock(mutex), "lock");
      fine(lockflight_shared_mutex_lock_shared(shared), "lock_shared");
    }
    fine(lockflight_barrier(me), "barrier");
    if (lockflight_rank(me) != 0) {
      require(lockflight_mutex_try_lock(mutex) == LOCKFLIGHT_BUSY, "a held mutex was free");
      require(lockflight_shared_mutex_try_lock(shared) == LOCKFLIGHT_BUSY, "readers were not seen");
      constexpr std::uint64_t soon = 100'000;
      require(lockflight_mutex_try_lock_for(mutex, soon) == LOCKFLIGHT_BUSY, "it was free in time");
      require(lockflight_mutex_try_lock_for(mutex, 0) == LOCKFLIGHT_BUSY, "it was free at once");
      timespec now{};
      timespec_get(&now, TIME_UTC);
      require(lockflight_mutex_try_lock_until(mutex, &now) == LOCKFLIGHT_BUSY, "it was free now");
      require(lockflight_shared_mutex_try_lock_for(shared, soon) == LOCKFLIGHT_BUSY,
              "the reader left in time");
      require(lockflight_shared_mutex_try_lock_until(shared, &now) == LOCKFLIGHT_BUSY,
              "the reader left");
      constexpr std::uint64_t ages = ~std::uint64_t{0};
      now.tv_sec += 1'000;
      fine(lockflight_shared_mutex_try_lock_shared_for(shared, ages), "try_lock_shared_for");
      fine(lockflight_shared_mutex_unlock_shared(shared), "unlock_shared");
      fine(lockflight_shared_mutex_try_lock_shared_until(shared, &now), "try_lock_shared_until");
      fine(lockflight_shared_mutex_unlock_shared(shared), "unlock_shared");
      // A busy lock is no error: the last error is still none.
      require(std::string(lockflight_last_error()).empty(), "BUSY is no error");
      // Writers that try may make a reader's attempt fail, but a waiting reader is not affected.
      fine(lockflight_shared_mutex_lock_shared(shared), "lock_shared");
      fine(lockflight_shared_mutex_unlock_shared(shared), "unlock_shared");
    }
    fine(lockflight_barrier(me), "barrier");
    if (lockflight_rank(me) == 0) {
      fine(lockflight_mutex_unlock(mutex), "unlock");
      fine(lockflight_shared_mutex_unlock_shared(shared), "unlock_shared");
    }
  });
}

// Which holders are let in beside each other, one way of holding after the other.
TEST_P(OnThreadsAndProcesses, UpAndDownLetInWhoMayBeThere) {
  run(config("2x2"), [](lockflight_participant* me) {
    lockflight_shared_mutex* m = nullptr;
    fine(lockflight_shared_mutex_create(me, nullptr, &m), "create");
    const bool goes = lockflight_rank(me) == 1;
    const auto step = [&](int (*call)(lockflight_shared_mutex*), const char* what,
                          bool readers_may) {
      if (goes) fine(call(m), what);
      fine(lockflight_barrier(me), "barrier");
      if (!goes) {
        for (const auto attempt :
             {lockflight_shared_mutex_try_lock, lockflight_shared_mutex_try_lock_upgrade})
          require(attempt(m) == LOCKFLIGHT_BUSY, std::string("busy for a writer: ") + what);
        if (readers_may) {
          fine(lockflight_shared_mutex_lock_shared(m), "lock_shared");
          require(lockflight_shared_mutex_try_unlock_shared_and_lock(m) == LOCKFLIGHT_BUSY,
                  std::string("two upgrade: ") + what);
          fine(lockflight_shared_mutex_unlock_shared(m), "BUSY leaves it shared");
        } else {
          require(lockflight_shared_mutex_try_lock_shared(m) == LOCKFLIGHT_BUSY,
                  std::string("a reader beside a writer: ") + what);
        }
        require(std::string(lockflight_last_error()).empty(), "BUSY is no error");
      }
      fine(lockflight_barrier(me), "barrier");
    };
    step(lockflight_shared_mutex_lock_upgrade, "lock_upgrade", true);
    step(lockflight_shared_mutex_unlock_upgrade_and_lock, "unlock_upgrade_and_lock", false);
    step(lockflight_shared_mutex_unlock_and_lock_upgrade, "unlock_and_lock_upgrade", true);
    if (goes) fine(lockflight_shared_mutex_unlock_upgrade(m), "unlock_upgrade");
    step(lockflight_shared_mutex_try_lock_upgrade, "try_lock_upgrade", true);
    if (goes) fine(lockflight_shared_mutex_unlock_upgrade_and_lock_shared(m), "to shared");
    step(lockflight_shared_mutex_try_unlock_shared_and_lock, "try_unlock_shared_and_lock", false);
    if (goes) {
      fine(lockflight_shared_mutex_unlock_and_lock_shared(m), "unlock_and_lock_shared");
      fine(lockflight_barrier(me), "barrier");
    } else {
      fine(lockflight_barrier(me), "barrier");
      fine(lockflight_shared_mutex_lock_shared(m), "readers share");
      fine(lockflight_shared_mutex_unlock_shared(m), "unlock_shared");
    }
    fine(lockflight_barrier(me), "barrier");
    if (goes) fine(lockflight_shared_mutex_unlock_shared(m), "unlock_shared");
  });
}

// On the way from reading to writing, and back, no other participant writes.
TEST_P(OnThreadsAndProcesses, NobodyWritesOnTheWayUpAndDown) {
  run(config("2x2"), [](lockflight_participant* me) {
    lockflight_shared_mutex* m = nullptr;
    lockflight_words* pair = nullptr;
    lockflight_words* written = nullptr;
    fine(lockflight_shared_mutex_create(me, nullptr, &m), "create");
    fine(lockflight_words_create(me, 2, &pair), "words");
    fine(lockflight_words_create(me, 1, &written), "words");
    const auto now = [&] {
      require_whole(pair);
      std::uint64_t value = 0;
      fine(lockflight_get_now(pair, 0, 0, &value), "get");
      return value;
    };
    const int self = lockflight_rank(me);
    std::uint64_t mine = 0;
    for (std::uint64_t i = 0; i < rounds; ++i) {
      if ((i + static_cast<std::uint64_t>(self)) % 2 == 0) {
        fine(lockflight_shared_mutex_lock_upgrade(m), "lock_upgrade");
        const std::uint64_t before = now();
        fine(lockflight_shared_mutex_unlock_upgrade_and_lock(m), "upgrade");
        require(now() == before, "another participant wrote during an upgrade");
        add_one(pair), ++mine;
        fine(lockflight_shared_mutex_unlock_and_lock_upgrade(m), "downgrade");
        require(now() == before + 1, "another participant wrote during a downgrade");
        fine(lockflight_shared_mutex_unlock_upgrade_and_lock_shared(m), "downgrade");
        require(now() == before + 1, "another participant wrote beside a reader");
      } else {
        fine(lockflight_shared_mutex_lock_shared(m), "lock_shared");
        const std::uint64_t before = now();
        const int code = lockflight_shared_mutex_try_unlock_shared_and_lock(m);
        if (code != LOCKFLIGHT_BUSY) {
          fine(code, "try_unlock_shared_and_lock");
          require(now() == before, "another participant wrote during an upgrade");
          add_one(pair), ++mine;
          fine(lockflight_shared_mutex_unlock_and_lock_shared(m), "downgrade");
          require(now() == before + 1, "another participant wrote during a downgrade");
        }
      }
      fine(lockflight_shared_mutex_unlock_shared(m), "unlock_shared");
    }
    fine(lockflight_put_now(written, self, 0, mine), "put");
    fine(lockflight_barrier(me), "barrier");
    std::uint64_t sum = 0;
    for (int of = 0; of < ranks; ++of) {
      std::uint64_t value = 0;
      fine(lockflight_get_now(written, of, 0, &value), "get");
      sum += value;
    }
    require(now() == sum, "additions were lost");
  });
}

TEST_P(OnThreadsAndProcesses, WordsTravel) {
  run(config(), [](lockflight_participant* me) {
    require(lockflight_ranks(me) == ranks, "another number of ranks");
    lockflight_words* words = nullptr;
    constexpr std::uint32_t count = 100;
    fine(lockflight_words_create(me, count, &words), "words");
    const int self = lockflight_rank(me);
    std::vector<std::uint64_t> mine(count);
    for (std::uint32_t i = 0; i < count; ++i) mine[i] = static_cast<std::uint64_t>(self) * 1000 + i;
    fine(lockflight_put(words, (self + 1) % ranks, 0, count, mine.data()), "put");
    fine(lockflight_barrier(me), "barrier");  // flushes
    std::vector<std::uint64_t> got(count);
    fine(lockflight_get(words, (self + 2) % ranks, 1, count - 1, got.data()), "get");
    fine(lockflight_flush(me), "flush");
    for (std::uint32_t i = 0; i + 1 < count; ++i)
      require(got[i] == static_cast<std::uint64_t>((self + 1) % ranks) * 1000 + i + 1,
              "other words than were put");
  });
}

// ---- ranks that fail ----

void expect_failed(const lockflight_config& config, lockflight_body* body, const char* words) {
  EXPECT_EQ(lockflight_run(&config, body, nullptr), LOCKFLIGHT_RANK_FAILED);
  EXPECT_NE(std::string(lockflight_last_error()).find(words), std::string::npos)
      << lockflight_last_error();
}

TEST_P(OnThreadsAndProcesses, ACodeOfABodyFailsTheRun) {
  expect_failed(
      config(), [](lockflight_participant* me, void*) { return lockflight_rank(me) == 2 ? 7 : 0; },
      "rank 2 failed: its body returned 7");
}

TEST_P(OnThreadsAndProcesses, WhatWasRefusedBeforeIsToldToo) {
  expect_failed(
      config(),
      [](lockflight_participant* me, void*) -> int {
        lockflight_mutex* mutex = nullptr;
        const lockflight_lock_options options{.name = lockflight_rank(me) == 1 ? "none" : nullptr};
        return lockflight_mutex_create(me, &options, &mutex);
      },
      "rank 1 failed: its body returned 3, after lock 'none' (accepted: spin");
}

// The waiters for the lock that the failing rank holds must not wait for ever.
TEST_P(OnThreadsAndProcesses, WhoReturnsWithALockFailsAndEndsTheOthersWait) {
  expect_failed(
      config(),
      [](lockflight_participant* me, void*) -> int {
        lockflight_mutex* mutex = nullptr;
        fine(lockflight_mutex_create(me, nullptr, &mutex), "create");
        if (lockflight_rank(me) == 3) fine(lockflight_mutex_lock(mutex), "lock");
        fine(lockflight_barrier(me), "barrier");
        if (lockflight_rank(me) == 3) return LOCKFLIGHT_OK;
        const int code = lockflight_mutex_lock(mutex);
        return code == LOCKFLIGHT_ABORTED ? code : 70;  // a process has no caller to return to
      },
      "rank 3 failed: its body returned while it held a lock, flight");
}

TEST(CapiProcesses, OneThatExitsFailsTheRun) {
  if (under_sanitizer) GTEST_SKIP() << "a sanitizer has its own way of ending a process";
  const lockflight_config config{.ranks = ranks};
  expect_failed(
      config,
      [](lockflight_participant* me, void*) -> int {
        if (lockflight_rank(me) == 1) _exit(0);
        return lockflight_barrier(me);
      },
      "exited with status 0");
}

TEST(CapiThreads, AreOfThisProcess) {
  std::atomic<int> came{0};
  run({.ranks = ranks, .threads = 1}, [&](lockflight_participant*) { came.fetch_add(1); });
  EXPECT_EQ(came.load(), ranks);
}

TEST(CapiRun, DefaultsAreARankForEachProcessor) {
  if (under_tsan) GTEST_SKIP() << "processes, under ThreadSanitizer";
  int processors = shm::discover(1).processors;
  const auto body = [](lockflight_participant* me, void* expected) -> int {
    return lockflight_ranks(me) == *static_cast<int*>(expected) ? LOCKFLIGHT_OK : 1;
  };
  EXPECT_EQ(lockflight_run(nullptr, body, &processors), LOCKFLIGHT_OK) << lockflight_last_error();
}

// ---- LOCKFLIGHT_PROFILE ----

/// A profile in a file, named by the environment as long as it lives.
class profile_file {
 public:
  explicit profile_file(const std::string& text)
      : path_(testing::TempDir() + "lockflight_capi_" + std::to_string(getpid()) + ".toml") {
    std::ofstream(path_) << text;
    setenv("LOCKFLIGHT_PROFILE", path_.c_str(), 1);
  }
  ~profile_file() {
    unsetenv("LOCKFLIGHT_PROFILE");
    std::remove(path_.c_str());
  }
  profile_file(const profile_file&) = delete;
  profile_file& operator=(const profile_file&) = delete;

 private:
  std::string path_;
};

// dq-fair says what it was made with when there are more ranks than its tokens can name: with 3
// bits 8, by default more than a run can have.
constexpr lockflight_config nine{.ranks = 9, .threads = 1, .unpinned = 1};
constexpr const char* three_bits = "format = 1\n[dq-fair.parameters]\ncounter_bits = 3\n";

TEST(CapiProfile, GivesLocksTheirParameters) {
  const profile_file file(three_bits);
  run(nine, [](lockflight_participant* me) {
    lockflight_mutex* mutex = nullptr;
    const lockflight_lock_options tuned{.name = "dq-fair"};
    refused(lockflight_mutex_create(me, &tuned, &mutex), LOCKFLIGHT_INVALID, "counter_bits=3: 9");
    const lockflight_lock_options another{.name = "rma-mcs", .parameters = "T_L2=3"};
    fine(lockflight_mutex_create(me, &another, &mutex), "create");
  });
}

TEST(CapiProfile, WhatTheProgramSaysGoesBeforeIt) {
  const profile_file file(three_bits);
  run(nine, [](lockflight_participant* me) {
    lockflight_mutex* mutex = nullptr;
    const lockflight_lock_options own{.name = "dq-fair", .parameters = "counter_bits=16"};
    fine(lockflight_mutex_create(me, &own, &mutex), "create");
  });
}

TEST(CapiProfile, OneThatCannotBeUsedIsWarnedOfOnce) {
  const profile_file file("format = 1\n[dq-fair.parameters]\ncounter_bits = 2\n");
  testing::internal::CaptureStderr();
  for (int i = 0; i < 2; ++i)
    run(nine, [](lockflight_participant* me) {
      lockflight_mutex* mutex = nullptr;
      const lockflight_lock_options usual{.name = "dq-fair"};
      fine(lockflight_mutex_create(me, &usual, &mutex), "create");
    });
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("lockflight: LOCKFLIGHT_PROFILE is ignored: "), std::string::npos) << said;
  EXPECT_NE(
      said.find(":3: dq-fair.parameters.counter_bits '2' (accepted: a whole number, 3 to 32)"),
      std::string::npos)
      << said;
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
}

}  // namespace
}  // namespace lockflight::test
