// A rank dies by a signal: the run ends promptly, names the rank and the signal, and leaves no
// process, no memory and no file behind, whatever the ranks were doing.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>

#include <array>
#include <atomic>
#include <cstring>
#include <random>
#include <string>

#include "lockflight/lock/create.hpp"
#include "lockflight/lock/d_mcs.hpp"
#include "lockflight/lock/dlm_server.hpp"
#include "lockflight/lock/dq.hpp"
#include "lockflight/lock/dq_fair.hpp"
#include "lockflight/lock/rma_rw.hpp"
#include "lockflight/lock/spin.hpp"
#include "lockflight/rma/barrier.hpp"
#include "mortal.hpp"
#include "support.hpp"
#include "tests/support/process_state.hpp"

namespace lockflight::test {
namespace {

using participant = rma::participant<shm::port>;

constexpr int most_ranks_here = 8;

/// Shared data of the ranks and the test.
struct board {
  std::array<std::atomic<pid_t>, most_ranks_here> pid{};
  std::atomic<bool> holding{false};
};

void expect_killed(const failure& f, rma::rank_t rank, int signal) {
  EXPECT_EQ(f.rank, rank) << f.what;
  EXPECT_TRUE(contains(f.what, "rank " + std::to_string(rank) + " ")) << f.what;
  EXPECT_TRUE(contains(f.what, "killed by signal " + std::to_string(signal))) << f.what;
}

/// The ways to wait, and the number of ranks for each: a rank that spins needs a core of its own.
struct way {
  const char* waiting;
  int ranks;
};
constexpr way ways[] = {{"auto", 2}, {"auto", 8}, {"spin", 3}, {"yield", 4}, {"park", 4}};

shm::config config_of(const way& w) {
  return {.machine = rma::topology::flat(w.ranks), .waiting = w.waiting};
}

std::string to_text(const way& w) { return w.waiting + (" " + std::to_string(w.ranks)); }

TEST(killed_rank, before_it_does_anything) {
  for (const way& w : ways) {
    SCOPED_TRACE(to_text(w));
    const failure f = failure_of(config_of(w), [](participant& me) {
      if (me.rank() == 1) die();
      wait_for_ever(me);
    });
    expect_killed(f, 1, SIGKILL);
  }
}

TEST(killed_rank, when_the_others_have_finished) {
  const failure f = failure_of({.machine = rma::topology::flat(4)}, [](participant& me) {
    rma::barrier all(me);
    all.arrive_and_wait();
    if (me.rank() == 3) die();
  });
  expect_killed(f, 3, SIGKILL);
}

TEST(killed_rank, while_it_holds_what_the_others_wait_for) {
  for (const way& w : ways) {
    SCOPED_TRACE(to_text(w));
    const shared_with_ranks<board> seen;
    const failure f = failure_of(config_of(w), [&](participant& me) {
      auto mutex = lock::create<lock::d_mcs>(me);
      if (me.rank() == 0) {
        mutex.lock();
        seen->holding = true;
        // Where waiting ends in sleep, most often until the others do.
        for (std::size_t r = 1; r < static_cast<std::size_t>(w.ranks); ++r) {
          while (seen->pid[r] == 0) sched_yield();
          for (int looks = 0; looks < 50 && state_of(seen->pid[r]) != 'S'; ++looks) sched_yield();
        }
        die();
      }
      while (!seen->holding) sched_yield();
      seen->pid[static_cast<std::size_t>(me.rank())] = getpid();
      mutex.lock();
    });
    expect_killed(f, 0, SIGKILL);
  }
}

// The holder waits until its victim sleeps in the kernel, and kills it there.
TEST(killed_rank, while_it_waits_parked) {
  for (const int ranks : {2, 4}) {
    const shared_with_ranks<board> seen;
    const failure f = failure_of(
        {.machine = rma::topology::flat(ranks), .waiting = "park"}, [&](participant& me) {
          auto mutex = lock::create<lock::d_mcs>(me);
          if (me.rank() == 0) {
            mutex.lock();
            seen->holding = true;
            require(eventually([&] { return seen->pid[1] != 0 && state_of(seen->pid[1]) == 'S'; }),
                    "the victim never sleeps");
            kill(seen->pid[1], SIGKILL);
            wait_for_ever(me);
          }
          while (!seen->holding) sched_yield();
          if (me.rank() == 1) seen->pid[1] = getpid();
          mutex.lock();
        });
    expect_killed(f, 1, SIGKILL);
  }
}

// A rank in the middle of a queue: its successors would wait for ever for a handoff, or a server
// for a release.
template <template <class> class Lock>
void dies_in_the_queue() {
  const shared_with_ranks<board> seen;
  const failure f =
      failure_of({.machine = rma::topology::flat(4), .waiting = "park"}, [&](participant& me) {
        auto mutex = lock::create<Lock>(me);
        const auto sleeps = [&](std::size_t rank) {
          return seen->pid[rank] != 0 && state_of(seen->pid[rank]) == 'S';
        };
        const auto i = static_cast<std::size_t>(me.rank());
        if (i == 0) {
          mutex.lock();
          seen->holding = true;
          require(eventually([&] { return sleeps(1) && sleeps(2) && sleeps(3); }), "all wait");
          kill(seen->pid[1], SIGKILL);
          mutex.unlock();
          wait_for_ever(me);
        }
        while (!seen->holding) sched_yield();
        // In this order into the queue.
        if (i > 1) require(eventually([&] { return sleeps(i - 1); }), "the one before waits");
        seen->pid[i] = getpid();
        mutex.lock();
        mutex.unlock();
        wait_for_ever(me);
      });
  expect_killed(f, 1, SIGKILL);
}

TEST(killed_rank, in_a_queue_of_clients) {
  dies_in_the_queue<lock::dq>();
  dies_in_the_queue<lock::dq_fair>();
  dies_in_the_queue<lock::dlm_server>();
}

TEST(killed_rank, while_it_spins) {
  for (const char* const waiting : {"spin", "yield"}) {
    const shared_with_ranks<board> seen;
    const failure f =
        failure_of({.machine = rma::topology::flat(3), .waiting = waiting}, [&](participant& me) {
          auto mutex = lock::create<lock::spin>(me);
          if (me.rank() == 0) {
            mutex.lock();
            seen->holding = true;
            while (seen->pid[1] == 0) sched_yield();
            kill(seen->pid[1], SIGKILL);
            wait_for_ever(me);
          }
          while (!seen->holding) sched_yield();
          if (me.rank() == 1) seen->pid[1] = getpid();
          if (me.rank() == 1) wait_for_ever(me);
          mutex.lock();
        });
    expect_killed(f, 1, SIGKILL);
  }
}

// ---- at random points ----

template <template <class> class Lock>
void die_at_random_points(int times) {
  std::mt19937_64 random(seed());
  for (int i = 0; i < times; ++i) {
    const way& w = ways[random() % std::size(ways)];
    const auto victim = static_cast<rma::rank_t>(random() % static_cast<unsigned>(w.ranks));
    const auto life = static_cast<std::int64_t>(random() % 300);
    SCOPED_TRACE(testing::Message() << to_text(w) << ", rank " << victim << " after " << life
                                    << " operations, seed " << seed());
    const failure f = failure_of(config_of(w), [&](participant& outer) {
      mortal p(outer.port(), outer.rank() == victim ? life : -1);
      rma::participant<mortal> me(p, 1u << 10);
      lock::created<Lock<mortal>, mortal> mutex(me);
      while (true) {
        mutex.lock();
        mutex.unlock();
        if constexpr (requires { mutex.lock_shared(); }) {
          mutex.lock_shared();
          mutex.unlock_shared();
        }
      }
    });
    expect_killed(f, victim, SIGKILL);
  }
}

TEST(killed_rank, at_any_operation_of_a_mutex) { die_at_random_points<lock::d_mcs>(40); }
TEST(killed_rank, at_any_operation_of_a_reader_writer_lock) {
  die_at_random_points<lock::rma_rw>(40);
}

// From outside, by another process; the parent's monitor runs while ranks do.
TEST(killed_rank, by_somebody_else_at_any_moment) {
  std::mt19937_64 random(seed());
  for (int i = 0; i < 10; ++i) {
    const way& w = ways[random() % std::size(ways)];
    const std::size_t victim = random() % static_cast<unsigned>(w.ranks);
    SCOPED_TRACE(testing::Message() << to_text(w) << ", rank " << victim);
    const shared_with_ranks<board> seen;
    const failure f = failure_of(
        config_of(w),
        [&](participant& me) {
          auto mutex = lock::create<lock::d_mcs>(me);
          seen->pid[static_cast<std::size_t>(me.rank())] = getpid();
          while (true) {
            mutex.lock();
            mutex.unlock();
          }
        },
        [&] {
          if (seen->pid[victim] != 0) kill(seen->pid[victim], SIGKILL);
        });
    expect_killed(f, static_cast<rma::rank_t>(victim), SIGKILL);
  }
}

// ---- other ends ----

TEST(killed_rank, by_other_signals) {
  for (const int signal : {SIGTERM, SIGABRT, SIGSEGV, SIGBUS, SIGFPE}) {
    const failure f = failure_of({.machine = rma::topology::flat(3)}, [&](participant& me) {
      if (me.rank() == 2) {
        const rlimit no_core{0, 0};
        setrlimit(RLIMIT_CORE, &no_core);
        kill(getpid(), signal);
      }
      wait_for_ever(me);
    });
    expect_killed(f, 2, signal);
    EXPECT_TRUE(contains(f.what, strsignal(signal))) << f.what;
  }
}

// Of several that die, one is named; none of the living is.
TEST(killed_rank, and_others_with_it) {
  for (int i = 0; i < 5; ++i) {
    const failure f = failure_of({.machine = rma::topology::flat(8)}, [](participant& me) {
      rma::barrier all(me);
      all.arrive_and_wait();
      if (me.rank() % 2 == 1) die();
      wait_for_ever(me);
    });
    EXPECT_EQ(f.rank % 2, 1) << f.what;
    expect_killed(f, f.rank, SIGKILL);
  }
}

}  // namespace
}  // namespace lockflight::test
