// The exact costs of cql: uncontended, when an attempt fails, and when readers and writers wait for
// each other.
#include <gtest/gtest.h>

#include "counts.hpp"
#include "lockflight/lock/cql.hpp"

namespace lockflight::test {
namespace {

using rma::topology;
using queue_at_home = placed<lock::cql>;

TEST(cql_counts, uncontended) {
  on_every_rank(far_apart, [](counted_participant& me) {
    queue_at_home l(me);
    if (me.rank() == 0) return;
    lock::cql<counted_port> another(me, l.cells);  // for a participant that holds it already
    const operation_counts fetch_add{.fetch_add = 1, .flush = 1};
    const operation_counts fails{.get = 1, .flush = 1};
    const operation_counts succeeds{.get = 1, .cas = 1, .flush = 2};
    costs(me, "lock_shared", fetch_add, [&] { l.lock.lock_shared(); });
    costs(me, "try_lock_shared beside a reader", succeeds,
          [&] { require(another.try_lock_shared(), "only readers are in"); });
    costs(me, "try_lock beside readers", fails,
          [&] { require(!another.try_lock(), "readers are in"); });
    costs(me, "unlock_shared", fetch_add, [&] { another.unlock_shared(); });
    costs(me, "unlock_shared", fetch_add, [&] { l.lock.unlock_shared(); });
    for (const bool ordered : {true, false}) {
      hooks(me).has_order = ordered;
      const std::uint64_t gets = me.port().inner().orders_posts() ? 1 : 0;
      costs(me, "lock", fetch_add, [&] { l.lock.lock(); });
      costs(me, "try_lock beside a writer", fails,
            [&] { require(!another.try_lock(), "a writer is in"); });
      costs(me, "try_lock_shared beside a writer", fails,
            [&] { require(!another.try_lock_shared(), "a writer is in"); });
      costs(me, "unlock", {.get = gets, .fetch_add = 1, .flush = 1}, [&] { l.lock.unlock(); });
      costs(me, "try_lock", succeeds, [&] { require(l.lock.try_lock(), "it is free"); });
      l.lock.unlock();
    }
  });
}

/// Rank 0 holds the lock, in place `first`, until the others wait for it, one after the other.
void hand_over(const topology& machine, bool held_shared, bool wanted_shared,
               const operation_counts& release, const lock::cql_parameters& set = {},
               std::uint32_t first = 0) {
  on_every_rank(machine, [&](counted_participant& me) {
    rma::barrier all(me);
    queue_at_home l(me, set);
    hooks(me).has_order = false;
    const auto waits = me.cells().take<rma::plain_cell>(1);
    if (me.rank() == 0) {
      rma::put_now(uncounted(me), l.cells.header,
                   lock::cql_header{}.with(lock::cql_header::head, first).bits());
      held_shared ? l.lock.lock_shared() : l.lock.lock();
      all.arrive_and_wait();
      watch(me, waits, rma::equals(static_cast<rma::word>(machine.ranks()) - 1));
      costs(me, "the release", release,
            [&] { held_shared ? l.lock.unlock_shared() : l.lock.unlock(); });
      all.arrive_and_wait();
      return;
    }
    all.arrive_and_wait();
    const auto rank = static_cast<rma::word>(me.rank());
    if (rank > 1) watch(me, waits, rma::equals(rank - 1));
    hooks(me).before_await = [&] { rma::put_now(uncounted(me), waits, rank); };
    costs(me, "the acquire", {.put = 2, .fetch_add = 1, .flush = 2, .load = 1, .store = 1},
          [&] { wanted_shared ? l.lock.lock_shared() : l.lock.lock(); });
    hooks(me).before_await = nullptr;
    if (!wanted_shared) l.lock.unlock();  // the other writer waits for it
    all.arrive_and_wait();
    if (wanted_shared) l.lock.unlock_shared();
  });
}

// All wait at the home's node of rank 0, so that its operations there are loopback.
TEST(cql_counts, writer_to_writer) {
  hand_over(far_apart, false, false,
            {.put = 1, .get = 1, .fetch_add = 1, .flush = 3, .loopback = 2});
}
TEST(cql_counts, reader_to_writer) {
  hand_over(far_apart, true, false,
            {.put = 1, .get = 1, .fetch_add = 1, .flush = 3, .loopback = 2});
}
// Q2: an entry that is not in its slot is looked for in the own words of both ranks.
TEST(cql_counts, an_entry_that_is_lost) {
  hand_over(topology::balanced({2, 1}), false, false,
            {.put = 1, .get = 2, .fetch_add = 1, .flush = 3, .loopback = 3}, {.slot_reads = 0});
}
// The numbers of places wrap around between the two writers, so with three ranks both have slot 0,
// and the entry of the second one counts once. Rank 0 reads that slot, then the slots of both
// places and the header, then the own words, and notifies the first writer.
TEST(cql_counts, two_writers_share_a_slot_where_numbers_wrap_around) {
  hand_over(topology::balanced({3, 1}), true, false,
            {.put = 1, .get = 7, .fetch_add = 1, .flush = 6, .loopback = 8}, {.slot_reads = 2},
            0xFFFF'FFFEU);
}
// One get and one put for each, and one flush for all the puts.
TEST(cql_counts, writer_to_two_readers) {
  hand_over(topology::balanced({3, 1}), false, true,
            {.put = 2, .get = 2, .fetch_add = 1, .flush = 4, .loopback = 3});
}

// A reader that is not the last one finds no entry in the first place, and that of the writer.
TEST(cql_counts, a_reader_beside_another_reads_the_queue) {
  on_every_rank(topology::balanced({3, 1}), [](counted_participant& me) {
    rma::barrier all(me);
    queue_at_home l(me);
    const auto waits = me.cells().take<rma::plain_cell>(1);
    if (me.rank() < 2) l.lock.lock_shared();
    all.arrive_and_wait();
    if (me.rank() == 2) {
      hooks(me).before_await = [&] { rma::put_now(uncounted(me), waits, 1); };
      l.lock.lock();
      hooks(me).before_await = nullptr;
      l.lock.unlock();
      all.arrive_and_wait();
      return;
    }
    watch(me, waits, rma::equals(1));
    if (me.rank() == 1)
      costs(me, "the first reader's release", {.get = 3, .fetch_add = 1, .flush = 3},
            [&] { l.lock.unlock_shared(); });
    else
      watch(me, l.cells.header, [](rma::word now) { return now >> 32 == 1; });
    if (me.rank() == 0)
      costs(me, "the last reader's release",
            {.put = 1, .get = 1, .fetch_add = 1, .flush = 3, .loopback = 2},
            [&] { l.lock.unlock_shared(); });
    all.arrive_and_wait();
  });
}

}  // namespace
}  // namespace lockflight::test
