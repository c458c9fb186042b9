// A run that bears losses: ranks are killed, and the others go on or end, as it should be.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <mutex>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "lockflight/fabric/decorator.hpp"
#include "lockflight/lock/create.hpp"
#include "lockflight/lock/dlm_server.hpp"
#include "lockflight/rma/barrier.hpp"
#include "mortal.hpp"
#include "support.hpp"

namespace lockflight::test {
namespace {

using participant = rma::participant<shm::port>;
using ranks = std::vector<rma::rank_t>;

bool any_rank(rma::rank_t) { return true; }

shm::config bearing(int count, const char* waiting = "auto") {
  return {.machine = rma::topology::flat(count), .waiting = waiting, .bears_loss_of = any_rank};
}

/// Runs, and expects that exactly these are lost.
template <class Body>
void expect_lost(ranks whom, const shm::config& what, Body body) {
  outcome seen = outcome_of(what, body);
  EXPECT_EQ(seen.failed.what, "");
  std::sort(seen.lost.begin(), seen.lost.end());
  EXPECT_EQ(seen.lost, whom);
}

void await_loss(auto& port, rma::rank_t rank) {
  while (!port.is_lost(rank)) port.pause(0);
}

// ---- what is borne, and what is not ----

TEST(lost_rank, before_it_does_anything) {
  for (const char* const waiting : {"auto", "park", "yield"})
    expect_lost({1, 2}, bearing(4, waiting), [](participant& me) {
      if (me.rank() == 1 || me.rank() == 2) die();
      rma::barrier all(me);
      all.arrive_and_wait();
    });
}

TEST(lost_rank, when_the_others_have_finished) {
  expect_lost({3}, bearing(4), [](participant& me) {
    rma::barrier all(me);
    all.arrive_and_wait();
    if (me.rank() == 3) die();
  });
}

TEST(lost_rank, is_not_one_that_the_config_needs) {
  shm::config what = bearing(4);
  what.bears_loss_of = [](rma::rank_t rank) { return rank != 2; };
  const failure f = failure_of(what, [](participant& me) {
    if (me.rank() == 2) die();
    wait_for_ever(me);
  });
  EXPECT_EQ(f.rank, 2);
  EXPECT_TRUE(contains(f.what, "was killed by signal 9")) << f.what;
}

TEST(lost_rank, is_never_rank_0) {
  const failure f = failure_of(bearing(3), [](participant& me) {
    if (me.rank() == 0) die();
    wait_for_ever(me);
  });
  EXPECT_EQ(f.rank, 0);
}

// A rank that crashes may have written anywhere before.
TEST(lost_rank, is_not_one_that_ends_itself) {
  for (const int signal : {SIGSEGV, SIGABRT, SIGTERM}) {
    const failure f = failure_of(bearing(3), [&](participant& me) {
      if (me.rank() == 1) {
        const rlimit no_core{0, 0};
        setrlimit(RLIMIT_CORE, &no_core);
        kill(getpid(), signal);
      }
      wait_for_ever(me);
    });
    EXPECT_EQ(f.rank, 1);
    EXPECT_TRUE(contains(f.what, "killed by signal " + std::to_string(signal))) << f.what;
  }
  const failure f = failure_of(bearing(3), [](participant& me) {
    if (me.rank() == 1) _exit(0);
    wait_for_ever(me);
  });
  EXPECT_TRUE(contains(f.what, "exited with status 0")) << f.what;
}

TEST(lost_rank, does_not_hide_one_that_fails) {
  const failure f = failure_of(bearing(4), [](participant& me) {
    if (me.rank() == 1) die();
    if (me.rank() == 2) {
      await_loss(me.port(), 1);
      throw std::runtime_error("overslept");
    }
    wait_for_ever(me);
  });
  EXPECT_EQ(f.what, "rank 2 failed: overslept");
}

TEST(lost_rank, may_be_one_that_somebody_needs) {
  const failure f = failure_of(bearing(4), [](participant& me) {
    if (me.rank() == 1) die();
    if (me.rank() == 2) {
      await_loss(me.port(), 1);
      throw rma::rank_needed(1, "was lost, and nobody else knows the way");
    }
    wait_for_ever(me);
  });
  EXPECT_EQ(f.rank, 1);
  EXPECT_EQ(f.what, "rank 1 was lost, and nobody else knows the way");
}

// A sleeper is woken: a message of the dead rank may be there without a ring of the bell.
TEST(lost_rank, in_the_middle_of_a_send) {
  constexpr rma::word room = 64;
  const shared_with_ranks<std::atomic<pid_t>> stuck;
  expect_lost({1}, bearing(3), [&](participant& me) {
    auto& port = me.port();
    if (me.rank() == 1) {
      for (rma::word i = 0; i < room; ++i) port.send(0, {i, 0, 0});
      *stuck = getpid();
      port.send(0, {room, 0, 0});  // takes a slot and waits: no rank receives
    } else if (me.rank() == 2) {
      while (*stuck == 0) sched_yield();
      kill(*stuck, SIGKILL);
      await_loss(port, 1);
      port.send(0, {room, 0, 0});
    } else {
      await_loss(port, 1);
      for (rma::word i = 0; i < room; ++i)
        require(port.receive() == rma::message{1, {i, 0, 0}}, "what the dead has sent");
      require(port.receive() == rma::message{2, {room, 0, 0}}, "what came behind it");
    }
  });
}

// ---- clients of dlm-server ----

/// A decorator that calls a function once, before its participant waits for its next message: the
/// participant's request has been sent then.
class watched : public fabric::decorator<shm::port> {
  using base = fabric::decorator<shm::port>;

 public:
  using base::base;
  void before_next_wait(std::function<void()> act) { act_ = std::move(act); }
  [[nodiscard]] rma::message receive() {
    if (act_) std::exchange(act_, nullptr)();
    return base::receive();
  }

 private:
  std::function<void()> act_;
};

using client = rma::participant<watched>;
using server_lock = lock::created<lock::dlm_server<watched>, watched>;

/// Calls `body(client&)` on every rank.
template <class Body>
auto on_watched_ports(Body body) {
  return [body](participant& outer) {
    watched port(outer.port());
    client me(port, 1u << 10);
    body(me);
  };
}

/// Rank 0 has the lock; the others ask for it, one after the other in the order of their ranks.
/// The victims are killed when they have asked. Then rank 0 gives the lock away.
struct line {
  int count;
  ranks victims;
  bool is_known;  // that they are lost, before rank 0 gives the lock away

  [[nodiscard]] bool dies(rma::rank_t rank) const {
    return std::find(victims.begin(), victims.end(), rank) != victims.end();
  }

  void operator()(client& me) const {
    auto& port = me.port();
    rma::barrier all(me);
    server_lock mutex(me);
    const auto turn = me.cells().take<rma::plain_cell>(1).at(0);
    const auto last = me.cells().take<rma::plain_cell>(1).at(0);
    if (me.rank() == 0) mutex.lock();
    all.arrive_and_wait();
    if (me.rank() == 0) {
      rma::put_now(port, turn, 1);
      port.await(turn, rma::equals(static_cast<rma::word>(count)));
      for (const rma::rank_t v : victims)
        if (is_known) await_loss(port, v);
      mutex.unlock();
    } else {
      const auto mine = static_cast<rma::word>(me.rank());
      port.poll(turn, rma::equals(mine), rma::backoff(100, 10'000));
      port.before_next_wait([&] {
        rma::put_now(port, turn, mine + 1);
        if (dies(me.rank())) die();
      });
      mutex.lock();
      rma::word before = 1;
      while (before < mine && dies(static_cast<rma::rank_t>(mine - before))) ++before;
      require(rma::get_now(port, last) == mine - before, "first come, first served");
      rma::put_now(port, last, mine);
      mutex.unlock();
    }
    all.arrive_and_wait();
    if (me.rank() == 0) require(mutex.try_lock(), "all have let go");
  }
};

TEST(lost_client, is_passed_over) {
  for (const ranks& victims : {ranks{1}, ranks{3}, ranks{5}, ranks{1, 2}, ranks{1, 5},
                               ranks{2, 3, 4}, ranks{1, 2, 3, 4, 5}})
    for (const bool is_known : {true, false})
      for (const char* const waiting : {"auto", "park"}) {
        SCOPED_TRACE(testing::Message() << testing::PrintToString(victims) << ' ' << waiting
                                        << (is_known ? ", known to be lost" : ""));
        expect_lost(victims, bearing(6, waiting), on_watched_ports(line{6, victims, is_known}));
      }
}

/// Rank 1 asks for a lock that rank 0 has, and is killed when it has been granted it and has not
/// received the grant. Before that it does something else.
template <class Before>
auto granted_and_killed(Before before) {
  return on_watched_ports([before](client& me) {
    auto& port = me.port();
    rma::barrier all(me);
    server_lock first(me);
    server_lock second(me);
    const auto granted = me.cells().take<rma::plain_cell>(1).at(1);
    if (me.rank() == 0) second.lock();
    all.arrive_and_wait();
    if (me.rank() == 1) {
      before(first);
      port.before_next_wait([&] {
        rma::put_now(port, granted.at(0), 1);
        port.await(granted, rma::equals(1));
        die();
      });
      second.lock();
    }
    if (me.rank() == 0) {
      port.await(granted.at(0), rma::equals(1));
      second.unlock();
      rma::put_now(port, granted, 1);
      await_loss(port, 1);
    }
    all.arrive_and_wait();
    for (server_lock* const each : {&first, &second}) {
      each->lock();
      each->unlock();
    }
    all.arrive_and_wait();
  });
}

TEST(lost_client, that_has_not_received_its_grant_is_passed_over) {
  expect_lost({1}, bearing(3), granted_and_killed([](server_lock&) {}));
}

// The grant that it has not received is that of another lock.
TEST(lost_client, that_holds_another_lock_ends_the_run) {
  const failure f =
      failure_of(bearing(3), granted_and_killed([](server_lock& first) { first.lock(); }));
  EXPECT_EQ(f.what, "rank 1 was lost while it held the lock dlm-server");
}

TEST(lost_client, that_neither_waits_nor_holds_is_not_missed) {
  expect_lost({2}, bearing(4), on_watched_ports([](client& me) {
                rma::barrier all(me);
                server_lock mutex(me);
                for (int i = 0; i < 20; ++i) {
                  mutex.lock();
                  mutex.unlock();
                }
                if (me.rank() == 2) die();
                all.arrive_and_wait();
                mutex.lock();
                mutex.unlock();
                all.arrive_and_wait();
              }));
}

/// Rank 1 is killed while it holds the lock. The others do this meanwhile.
template <class Meanwhile>
void expect_held(const char* waiting, Meanwhile meanwhile) {
  SCOPED_TRACE(waiting);
  const failure f = failure_of(bearing(4, waiting), on_watched_ports([meanwhile](client& me) {
                                 rma::barrier all(me);
                                 server_lock mutex(me);
                                 if (me.rank() == 1) mutex.lock();
                                 all.arrive_and_wait();
                                 if (me.rank() == 1) die();
                                 meanwhile(me, mutex, all);
                               }));
  EXPECT_EQ(f.rank, 1);
  EXPECT_EQ(f.what, "rank 1 was lost while it held the lock dlm-server");
}

TEST(lost_client, that_holds_ends_the_run) {
  for (const char* const waiting : {"auto", "yield", "park"}) {
    expect_held(waiting, [](client&, server_lock& mutex, auto&) { mutex.lock(); });
    expect_held(waiting, [](client&, server_lock&, auto& all) { all.arrive_and_wait(); });
    expect_held(waiting, [](client& me, server_lock& mutex, auto& all) {
      if (me.rank() == 0) return all.arrive_and_wait();
      mutex.lock();
    });
    expect_held(waiting, [](client&, server_lock& mutex, auto&) {
      while (!mutex.try_lock_within(1'000)) continue;
    });
  }
}

// The home may learn of it in an unlock inside a destructor: the error is the same.
TEST(lost_client, that_holds_ends_the_run_of_who_unlocks_in_a_destructor) {
  const failure f = failure_of(bearing(3), on_watched_ports([](client& me) {
                                 const rlimit no_core{0, 0};
                                 setrlimit(RLIMIT_CORE, &no_core);
                                 rma::barrier all(me);
                                 server_lock first(me);
                                 server_lock second(me);
                                 if (me.rank() == 1) first.lock();
                                 all.arrive_and_wait();
                                 if (me.rank() == 1) die();
                                 while (true) const std::scoped_lock hold(second);
                               }));
  EXPECT_EQ(f.what, "rank 1 was lost while it held the lock dlm-server");
}

TEST(lost_client, that_is_the_home_ends_the_run) {
  const failure f = failure_of(bearing(4), on_watched_ports([](client& me) {
                                 server_lock mutex(me);
                                 rma::barrier all(me);
                                 all.arrive_and_wait();
                                 if (me.rank() == 0) die();
                                 mutex.lock();
                               }));
  EXPECT_EQ(f.rank, 0);
  EXPECT_TRUE(contains(f.what, "was killed by signal 9")) << f.what;
}

// ---- at random points ----

// Whatever it was doing: the run ends well and all that was done under the lock is there, or it
// ends with an error that names the rank.
TEST(lost_client, at_any_operation) {
  std::mt19937_64 random(seed());
  int borne = 0;
  for (int i = 0; i < 60; ++i) {
    const auto victim = 1 + static_cast<rma::rank_t>(random() % 3);
    const auto life = static_cast<std::int64_t>(random() % 300);
    SCOPED_TRACE(testing::Message()
                 << "rank " << victim << " after " << life << " operations, seed " << seed());
    const shared_with_ranks<std::atomic<rma::word>> done;
    const auto play = [&](participant& outer) {
      mortal port(outer.port(), outer.rank() == victim ? life : -1);
      rma::participant<mortal> me(port, 1u << 10);
      rma::barrier all(me);
      lock::created<lock::dlm_server<mortal>, mortal> mutex(me);
      const auto count = me.cells().take<rma::plain_cell>(1).at(0);
      all.arrive_and_wait();
      for (int round = 0; round < 50; ++round) {
        if (round % 3 != 0)
          mutex.lock();
        else if (!mutex.try_lock_within(1'000))
          continue;
        rma::put_now(port, count, rma::get_now(port, count) + 1);
        ++*done;
        mutex.unlock();
      }
      all.arrive_and_wait();
      if (me.rank() == 0) require(port.load(count) == *done, "nothing was lost");
    };
    const outcome seen = outcome_of(bearing(4), play);
    if (seen.failed.rank < 0) {
      EXPECT_TRUE(seen.lost.empty() || seen.lost == ranks{victim});
      borne += seen.lost.empty() ? 0 : 1;
    } else {
      EXPECT_EQ(seen.failed.what,
                "rank " + std::to_string(victim) + " was lost while it held the lock dlm-server");
    }
  }
  EXPECT_GT(borne, 0) << "no victim was killed outside of the lock";
}

}  // namespace
}  // namespace lockflight::test
