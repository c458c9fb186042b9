// The locks of a window on shared memory: a participant that runs out of queue nodes, and many
// participants that lock all, one or several targets. The rules are searched in
// tests/lab/check/window_test.cpp.
#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

#include "counts.hpp"
#include "guarded.hpp"
#include "lockflight/lock/d_mcs.hpp"
#include "lockflight/lock/window/window_global.hpp"
#include "lockflight/lock/window/window_locks.hpp"
#include "lockflight/rma/barrier.hpp"
#include "tests/support/fabrics.hpp"

namespace lockflight::test {
namespace {

using port = shm_threads::port_type;
using participant = rma::participant<port>;

/// A window of several targets, all at rank 0.
template <template <class> class Way>
struct window {
  using door = lock::whole_window<Way<port>>;
  using target = lock::window_lock<lock::d_mcs, door, port>;

  window(participant& me, int targets) : in(me, door::cells::place(me.cells(), me.machine(), 0)) {
    targets_.reserve(static_cast<std::size_t>(targets));
    for (int t = 0; t < targets; ++t)
      targets_.emplace_back(me, in, target::cells::place(me.cells(), me.machine(), {}, 0), t,
                            lock::d_mcs<port>::parameters{});
  }
  [[nodiscard]] target& at(int t) { return targets_[static_cast<std::size_t>(t)]; }

  door in;

 private:
  std::vector<target> targets_;
};

template <class Way>
class window_locks : public testing::Test {};

template <template <class> class Way>
struct by {
  template <class P>
  using on = Way<P>;
};
using ways = testing::Types<by<lock::window_groups>, by<lock::window_global>>;
TYPED_TEST_SUITE(window_locks, ways);

constexpr int most = participant::most_nested;

// A mutex needs a queue node for each target, and so does the window's own lock if it has a queue.
TYPED_TEST(window_locks, a_participant_without_queue_nodes_has_taken_nothing) {
  shm_threads::run(rma::topology::flat(1), [](participant& me) {
    window<TypeParam::template on> w(me, most + 1);
    const auto refused = [&](int target) {
      try {
        w.at(target).lock();
      } catch (const std::length_error&) {
        return true;
      }
      return false;
    };
    int held = 0;
    while (!refused(held)) ++held;
    require(held == most || held == most - 1, "as many as there are queue nodes");
    for (int t = 0; t < held; ++t) w.at(t).unlock();
    w.in.lock_all();  // free, and so is the window's own lock
    w.in.unlock_all();

    for (int t = 0; t < most; ++t) w.at(t).lock_shared();
    require(refused(most), "neither for the target nor for the door");
    for (int t = 0; t < most; ++t) w.at(t).unlock_shared();
    w.in.lock_all();
    w.in.unlock_all();
    w.at(0).lock();
    w.at(0).unlock();
  });
}

// Two targets in any order of unlocking, against participants that lock all.
TYPED_TEST(window_locks, all_exclude_some) {
  shm_threads::run(rma::topology::flat(4), [](participant& me) {
    rma::barrier all(me);
    window<TypeParam::template on> w(me, 2);
    guarded data(me, 0);
    for (int i = 0; i < 200; ++i) {
      if (me.rank() % 2 == 0) {
        w.at(0).lock();
        w.at(1).lock();
        w.at(i % 2).unlock();
        if (i % 2 == 1) data.write([] {});  // under the first one
        w.at((i + 1) % 2).unlock();
      } else {
        w.in.lock_all();
        static_cast<void>(data.look([] {}));
        w.in.unlock_all();
      }
    }
    all.arrive_and_wait();
    require(data.look([] {}) == 200, "nobody was lost");
  });
}

// By favour: one atomic operation for the announcement, and the reads of the target's word and the
// bias, before and after it.
TEST(window_favour, a_participant_that_is_alone_locks_by_one_atomic_operation) {
  on_every_rank(rma::topology::flat(2), [](counted_participant& me) {
    using door = lock::whole_window<lock::window_groups<counted_port>>;
    using target = lock::window_lock<lock::d_mcs, door, counted_port>;
    rma::barrier all(me);
    door in(me, door::cells::place(me.cells(), me.machine(), 0));
    target one(me, in, target::cells::place(me.cells(), me.machine(), {}, 1), 1, {});
    if (me.rank() == 0) {
      for (int i = 0; i < 100; ++i) {
        one.lock();
        one.unlock();
      }
      costs(me, "a lock", {.load = 4, .rmw = 1}, [&] { one.lock(); });
      costs(me, "its unlock", {.store = 1}, [&] { one.unlock(); });
    }
    all.arrive_and_wait();
    if (me.rank() == 1) {  // takes the favour away
      one.lock();
      one.unlock();
    }
    all.arrive_and_wait();
    if (me.rank() == 0) {
      me.port().reset_counts();
      one.lock();
      one.unlock();
      require(me.port().counts().network() > 0, "the target's lock is taken again");
    }
    all.arrive_and_wait();
  });
}

}  // namespace
}  // namespace lockflight::test
