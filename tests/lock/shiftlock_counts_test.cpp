// The exact costs of shiftlock: uncontended, when an attempt fails, and when writers hand over and
// let readers in.
#include <gtest/gtest.h>

#include "counts.hpp"
#include "lockflight/lock/shiftlock.hpp"

namespace lockflight::test {
namespace {

using rma::topology;

using shift = placed<lock::shiftlock>;

TEST(shiftlock_counts, uncontended) {
  on_every_rank(far_apart, [](counted_participant& me) {
    shift l(me);
    if (me.rank() == 0) return;
    lock::shiftlock<counted_port> another(me, l.cells);  // for a participant that holds it already
    const operation_counts one_add{.add = 1, .flush = 1};
    const operation_counts get_and_compare_swap{.get = 1, .cas = 1, .flush = 2};
    costs(me, "lock_shared", {.fetch_add = 1, .flush = 1}, [&] { l.lock.lock_shared(); });
    costs(me, "try_lock_shared beside a reader", get_and_compare_swap,
          [&] { require(l.lock.try_lock_shared(), "only readers are in"); });
    costs(me, "try_lock beside readers", {.get = 1, .cas = 2, .flush = 2},
          [&] { require(!another.try_lock(), "readers are in"); });
    costs(me, "unlock_shared", one_add, [&] { l.lock.unlock_shared(); });
    costs(me, "unlock_shared", one_add, [&] { l.lock.unlock_shared(); });

    for (const bool ordered : {true, false}) {
      hooks(me).has_order = ordered;
      const std::uint64_t trips = me.port().inner().orders_posts() ? 1 : 2;
      const operation_counts release{.add = 1, .cas = 1, .flush = trips, .load = 1};
      costs(me, "lock", {.fetch_add = 1, .swap = 1, .flush = 2}, [&] { l.lock.lock(); });
      costs(me, "try_lock_shared beside a writer", {.get = 1, .flush = 1},
            [&] { require(!another.try_lock_shared(), "a writer is in"); });
      costs(me, "try_lock beside a writer", {.get = 1, .cas = 1, .flush = 1},
            [&] { require(!another.try_lock(), "a writer is in"); });
      costs(me, "unlock", release, [&] { l.lock.unlock(); });
      costs(me, "try_lock", {.get = 1, .cas = 2, .flush = 2},
            [&] { require(l.lock.try_lock(), "it is free"); });
      costs(me, "unlock after try_lock", release, [&] { l.lock.unlock(); });
    }
  });
}

/// Rank 0 holds the lock until rank 1 waits behind it. Both spend what is expected.
void shift_to_a_writer(std::int64_t handovers, const operation_counts& pass) {
  on_every_rank(far_apart, [&](counted_participant& me) {
    rma::barrier both(me);
    shift l(me, {.handovers = handovers});
    const auto waits = me.cells().take<rma::plain_cell>(1);
    if (me.rank() == 0) {
      l.lock.lock();
      both.arrive_and_wait();
      watch(me, waits, rma::equals(1));
      costs(me, "the release", pass, [&] { l.lock.unlock(); });
      both.arrive_and_wait();
      return;
    }
    both.arrive_and_wait();
    hooks(me).before_await = [&] { rma::put_now(uncounted(me), waits, 1); };
    // After a handover its holder is in; after a change of the mode it reads the state once.
    const std::uint64_t polls = handovers == 0 ? 1 : 0;
    costs(me, "the acquire",
          {.put = 1, .get = polls, .swap = 1, .flush = 2 + polls, .load = 1, .store = 1},
          [&] { l.lock.lock(); });
    hooks(me).before_await = nullptr;
    l.lock.unlock();
    both.arrive_and_wait();
  });
}

TEST(shiftlock_counts, a_handover_is_one_put) {
  shift_to_a_writer(1, {.put = 1, .flush = 1, .load = 1, .store = 1});
}
TEST(shiftlock_counts, readers_are_let_in_by_one_fetch_add) {
  shift_to_a_writer(0,
                    {.put = 1, .fetch_add = 1, .flush = 2, .loopback = 1, .load = 1, .store = 1});
}

// Two writers in a row, and then the reader that waited for the first.
TEST(shiftlock_counts, a_reader_waits_for_one_more_writer_than_handovers) {
  on_every_rank(topology::flat(4), [](counted_participant& me) {
    rma::barrier all(me);
    shift l(me, {.handovers = 1});
    const auto order = me.cells().take<rma::nic_cell>(1);
    const auto waits = me.cells().take<rma::plain_cell>(1);
    const auto enters = [&](rma::word place) {
      require(rma::fetch_add_now(uncounted(me), order, 1) == place, "entered out of order");
    };
    if (me.rank() == 0) l.lock.lock();
    all.arrive_and_wait();
    if (me.rank() == 1) {  // the reader
      hooks(me).before_await = nullptr;
      l.lock.lock_shared();
      enters(2);
      l.lock.unlock_shared();
    } else if (me.rank() == 0) {
      watch(me, l.cells.state, [](rma::word now) { return (now & 0xffffff) == 1; });
      watch(me, waits, rma::equals(2));
      enters(0);
      l.lock.unlock();
    } else {
      // Rank 2 queues first, then rank 3.
      if (me.rank() == 3) watch(me, waits, rma::equals(1));
      hooks(me).before_await = [&] {
        rma::put_now(uncounted(me), waits, static_cast<rma::word>(me.rank()) - 1);
      };
      l.lock.lock();
      hooks(me).before_await = nullptr;
      enters(static_cast<rma::word>(me.rank()) == 2 ? 1 : 3);
      l.lock.unlock();
    }
    all.arrive_and_wait();
  });
}

TEST(shiftlock_counts, refuses_more_ranks_than_it_can_count) {
  static_assert(lock::shiftlock<counted_port>::most_ranks({}) == 1 << 23);
  on_every_rank(topology::flat(8),
                [](counted_participant& me) { shift l(me, {.counter_bits = 3}); });
  on_every_rank(topology::flat(9), [](counted_participant& me) {
    try {
      shift l(me, {.counter_bits = 3});
      require(false, "9 ranks are too many");
    } catch (const std::invalid_argument& refused) {
      require(std::string(refused.what()) ==
                  "shiftlock with counter_bits=3: 9 ranks (accepted: 1 to 8, as many as its state "
                  "can count)",
              refused.what());
    }
  });
}

}  // namespace
}  // namespace lockflight::test
