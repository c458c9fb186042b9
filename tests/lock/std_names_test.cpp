// The locks under std's names: its guards work with every lock, and concepts say what each lock
// offers.
#include <gtest/gtest.h>

#include <chrono>
#include <mutex>
#include <shared_mutex>
#include <type_traits>

#include "lockflight/baseline/pthread.hpp"
#include "lockflight/lock/all.hpp"
#include "lockflight/lock/concepts.hpp"
#include "lockflight/lock/create.hpp"
#include "lockflight/lockflight.hpp"
#include "lockflight/rma/barrier.hpp"
#include "tests/support/fabrics.hpp"

namespace lockflight::test {
namespace {

using port = shm_threads::port_type;
using participant = rma::participant<port>;

// ---- concepts ----

template <template <class> class Lock>
constexpr bool is_mutex =
    lock::exclusive<Lock<port>> && lock::can_try<Lock<port>> && !lock::shared<Lock<port>> &&
    !lock::can_try_shared<Lock<port>> && Lock<port>::about.what == lock::kind::mutex;
template <template <class> class Lock>
constexpr bool is_rw =
    lock::exclusive<Lock<port>> && lock::can_try<Lock<port>> && lock::shared<Lock<port>> &&
    lock::can_try_shared<Lock<port>> && Lock<port>::about.what == lock::kind::rw;

// A copy of a handle would release what the handle holds.
static_assert(!std::is_copy_constructible_v<lock::created<lock::d_mcs<port>, port>>);
static_assert(!std::is_move_constructible_v<lock::created<lock::d_mcs<port>, port>>);
static_assert(!std::is_copy_constructible_v<lock_table<lock::d_mcs, port>::lock_type>);
static_assert(!std::is_copy_constructible_v<lockflight::mutex<port>>);
static_assert(!std::is_copy_constructible_v<lockflight::shared_mutex<port>>);

// The locks of the list: lockflight/lock/requirements.hpp.
static_assert(is_mutex<mutex>);
static_assert(is_rw<shared_mutex>);
static_assert(lock::can_upgrade<lock::flight_rw<port>> && lock::can_upgrade<shared_mutex<port>>);
static_assert(!lock::can_upgrade<lock::rma_rw<port>>);

static_assert(!lock::shared<lock::d_mcs<port>>);
static_assert(!lock::can_try_shared<lock::d_mcs<port>>);

// Types that are not locks.
struct lacks_facts {
  void lock();
  void unlock();
};
static_assert(!lock::exclusive<lacks_facts>);
struct lacks_unlock_shared : lock::d_mcs<port> {
  void lock_shared();
};
static_assert(!lock::shared<lacks_unlock_shared>);
struct tries_without_saying : lock::spin<port> {
  void try_lock();
};
static_assert(!lock::can_try<tries_without_saying>);

// ---- the guards: one participant, whose second handle is a second, independent one ----

template <class Body>
void alone(Body body) {
  EXPECT_NO_THROW(shm_threads::run(rma::topology::flat(1), body));
}

/// Two handles of one lock.
template <class Lock>
struct twins {
  using cells = typename Lock::cells;
  using parameters = typename Lock::parameters;

  explicit twins(participant& me)
      : where(cells::place(me.cells(), me.machine(), parameters{}, 0)),
        one(me, where, parameters{}),
        other(me, where, parameters{}) {}

  [[nodiscard]] bool is_free() {
    const std::unique_lock attempt(other, std::try_to_lock);
    return attempt.owns_lock();
  }

  cells where;
  Lock one;
  Lock other;
};

template <class Visit>
void for_each_lock(participant& me, Visit visit) {
  const auto call = [&]<class Family>(Family) {
    twins<typename Family::template on<port>> l(me);
    visit(l);
  };
  lock::all::for_each(call);
  call(lock::family<baseline::pthread_mutex>{});
  call(lock::family<baseline::pthread_rwlock>{});
}

TEST(std_names, lock_guard) {
  alone([](participant& me) {
    for_each_lock(me, [](auto& l) {
      {
        const std::lock_guard guard(l.one);
        require(!l.is_free(), "held inside the guard");
      }
      require(l.is_free(), "released by the guard");
    });
  });
}

TEST(std_names, unique_lock_deferred) {
  alone([](participant& me) {
    for_each_lock(me, [](auto& l) {
      std::unique_lock guard(l.one, std::defer_lock);
      require(!guard.owns_lock() && l.is_free(), "deferred");
      guard.lock();
      require(guard.owns_lock() && !l.is_free(), "locked");
      guard.unlock();
      require(!guard.owns_lock() && l.is_free(), "unlocked");
      require(guard.try_lock() && !l.is_free(), "tried");
    });
  });
}

TEST(std_names, unique_lock_tries) {
  alone([](participant& me) {
    for_each_lock(me, [](auto& l) {
      {
        const std::unique_lock first(l.one, std::try_to_lock);
        require(first.owns_lock(), "it was free");
        const std::unique_lock second(l.other, std::try_to_lock);
        require(!second.owns_lock(), "the other handle has it");
      }
      require(l.is_free(), "a failed attempt leaves no trace");
    });
  });
}

TEST(std_names, unique_lock_moves_and_adopts) {
  alone([](participant& me) {
    for_each_lock(me, [](auto& l) {
      l.one.lock();
      std::unique_lock guard(l.one, std::adopt_lock);
      {
        const auto moved = std::move(guard);
        require(!l.is_free(), "moved, not released");
      }
      require(l.is_free(), "released where it moved to");
    });
  });
}

TEST(std_names, scoped_lock_with_two_and_three) {
  alone([](participant& me) {
    for_each_lock(me, [&]<class Lock>(twins<Lock>& a) {
      twins<Lock> b(me), c(me);
      {
        const std::scoped_lock two(a.one, b.one);
        require(!a.is_free() && !b.is_free() && c.is_free(), "two of three");
      }
      {
        const std::scoped_lock three(c.one, a.one, b.one);
        require(!a.is_free() && !b.is_free() && !c.is_free(), "three of three");
      }
      require(a.is_free() && b.is_free() && c.is_free(), "none");
    });
  });
}

TEST(std_names, scoped_lock_with_different_locks) {
  alone([](participant& me) {
    twins<lock::d_mcs<port>> a(me);
    twins<lock::rma_rw<port>> b(me);
    twins<lock::spin<port>> c(me);
    const std::scoped_lock three(a.one, b.one, c.one);
    require(!a.is_free() && !b.is_free() && !c.is_free(), "three of three");
  });
}

TEST(std_names, shared_lock) {
  alone([](participant& me) {
    for_each_lock(me, []<class Lock>(twins<Lock>& l) {
      if constexpr (lock::shared<Lock>) {
        {
          const std::shared_lock reader(l.one);
          require(!l.is_free(), "a writer is kept out");
          const std::shared_lock another(l.other, std::try_to_lock);
          require(another.owns_lock(), "another reader is not");
        }
        require(l.is_free(), "the readers left");

        const std::unique_lock writer(l.one);
        std::shared_lock late(l.other, std::defer_lock);
        require(!late.try_lock(), "a reader is kept out by a writer");
      }
    });
  });
}

// ---- what users create ----

static_assert(std::is_same_v<decltype(mutex(std::declval<participant&>())), mutex<port>>);
static_assert(
    std::is_same_v<decltype(shared_mutex(std::declval<participant&>())), shared_mutex<port>>);

TEST(std_names, mutex_guards_among_ranks) {
  EXPECT_NO_THROW(shm_processes::run(rma::topology::balanced({2, 2}), [](auto& me) {
    rma::barrier all(me);
    mutex one(me);
    mutex two(me, lock::flight_parameters{.local_budget = 1}, /*home=*/3);
    const auto sum = me.cells().template take<rma::plain_cell>(1);
    for (int i = 0; i < 50; ++i) {
      const std::scoped_lock both(one, two);
      rma::put_now(me.port(), sum, rma::get_now(me.port(), sum) + 1);
    }
    all.arrive_and_wait();
    require(rma::get_now(me.port(), sum) == 200, "no increment is lost");
  }));
}

TEST(std_names, shared_mutex_guards_among_ranks) {
  const lock::flight_rw_parameters few_in_a_row{.t_w = 2};
  const lock::flight_rw_parameters as_in_a_table =
      lock::in_table(lock::flight_rw_parameters{}, {.locks = 9, .ranks = 4});
  const rma::topology two_nodes = rma::topology::balanced({2, 2});
  const rma::topology four_nodes = rma::topology::balanced({4, 1});
  for (const auto& [set, machine] :
       {std::pair(few_in_a_row, two_nodes), {as_in_a_table, four_nodes}})
    EXPECT_NO_THROW(shm_processes::run(machine, [&](auto& me) {
      rma::barrier all(me);
      shared_mutex data(me, set);
      const auto sum = me.cells().template take<rma::plain_cell>(1);
      for (int i = 0; i < 50; ++i) {
        if (i % 2 == 0) {
          const std::lock_guard writer(data);
          rma::put_now(me.port(), sum, rma::get_now(me.port(), sum) + 1);
        } else {
          const std::shared_lock reader(data);
          const rma::word before = rma::get_now(me.port(), sum);
          require(rma::get_now(me.port(), sum) == before, "no writer beside a reader");
        }
      }
      all.arrive_and_wait();
      require(rma::get_now(me.port(), sum) == 100, "no increment is lost");
    }));
}

// One holder keeps it until the other has seen that an attempt fails.
TEST(std_names, try_to_lock_fails_beside_another_rank) {
  EXPECT_NO_THROW(shm_processes::run(rma::topology::flat(2), [](auto& me) {
    rma::barrier both(me);
    mutex m(me);
    std::unique_lock guard(m, std::defer_lock);
    if (me.rank() == 0) guard.lock();
    both.arrive_and_wait();
    if (me.rank() == 1) require(!guard.try_lock(), "rank 0 has it");
    both.arrive_and_wait();
    if (me.rank() == 0) guard.unlock();
    both.arrive_and_wait();
    if (me.rank() == 1) require(guard.try_lock(), "nobody has it");
  }));
}

TEST(std_names, create_makes_every_lock) {
  alone([](participant& me) {
    lock::all::for_each([&]<template <class> class Lock>(lock::family<Lock>) {
      const std::uint32_t before = me.cells().used();
      auto made = lock::create<Lock>(me);
      const std::lock_guard guard(made);
      require(me.cells().used() > before, "locks take their words from the participant's layout");
    });
    auto a = lock::create<lock::spin_backoff>(me, {.first_ns = 1, .most_ns = 2});
    auto b = lock::create<lock::rma_rw>(me, {.t_dc = 1});
    auto c = lock::create<lock::flight>(me, {.barge = 1});
    const std::scoped_lock all(a, b, c);
    static_assert(std::is_base_of_v<lock::rma_rw<port>, decltype(b)>);
  });
}

// std's TimedLockable and SharedTimedLockable.
TEST(std_names, timed_guards_give_up_in_time) {
  using namespace std::chrono_literals;
  EXPECT_NO_THROW(shm_processes::run(rma::topology::balanced({2, 2}), [](auto& me) {
    rma::barrier all(me);
    mutex m(me);
    shared_mutex s(me);
    if (me.rank() == 0) m.lock(), s.lock();
    all.arrive_and_wait();
    if (me.rank() != 0) {
      const std::unique_lock brief(m, 100us);
      require(!brief.owns_lock(), "somebody has it");
      const std::unique_lock past(m, std::chrono::steady_clock::now() - 1h);
      require(!past.owns_lock(), "somebody has it");
      const std::shared_lock reader(s, 100us);
      require(!reader.owns_lock(), "a writer is in");
      const std::unique_lock writer(s, std::chrono::system_clock::now() + 100us);
      require(!writer.owns_lock(), "another writer is in");
    }
    all.arrive_and_wait();
    if (me.rank() == 0) m.unlock(), s.unlock();
    const std::unique_lock patient(m, std::chrono::hours::max());
    require(patient.owns_lock(), "it is free in time");
    const std::shared_lock reader(s, 1h);
    require(reader.owns_lock(), "no writer is there");
  }));
}

}  // namespace
}  // namespace lockflight::test
