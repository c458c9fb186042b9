// The costs of waiting and of handing a lock over: exact counts of a choreography of two ranks. The
// holder polls, uncounted, until the waiter is where the case wants it.
#include <gtest/gtest.h>

#include "counts.hpp"
#include "lockflight/lock/d_mcs.hpp"
#include "lockflight/lock/dq.hpp"
#include "lockflight/lock/rma_mcs.hpp"
#include "lockflight/lock/rma_rw.hpp"

namespace lockflight::test {
namespace {

using rma::topology;

/// The tail of the queue at `level` that `rank` goes through.
template <class Lock>
rma::nic_cell tail_of(const Lock& l, const topology& machine, rma::rank_t rank, int level) {
  if constexpr (requires { l.cells.tail; })
    return l.cells.tail;
  else
    return l.cells.queues.tail(machine, rank, level);
}

/// One handoff from rank 0 to `waiter`, which waits in the queue at `level`.
struct handoff {
  topology machine;
  rma::rank_t waiter;
  int level;
  operation_counts wait, pass, release;  // the waiter's lock, the holder's unlock, the waiter's
};

template <template <class> class Lock>
void check(const handoff& h, const typename placed<Lock>::parameters& set = {}) {
  on_every_rank(h.machine, [&](counted_participant& me) {
    rma::barrier all(me);
    placed<Lock> l(me, set);
    if (me.rank() == 0) {
      l.lock.lock();
      // The last in a queue is identified by its NEXT cell, which its successor writes after its
      // swap on the tail.
      const rma::word own = rma::get_now(uncounted(me), tail_of(l, h.machine, 0, h.level));
      all.arrive_and_wait();
      watch(me, rma::from_word<rma::plain_cell>(own), rma::differs_from(rma::null_ref));
      costs(me, "unlock with a successor", h.pass, [&] { l.lock.unlock(); });
      return;
    }
    all.arrive_and_wait();
    if (me.rank() == h.waiter) {
      costs(me, "lock with a predecessor", h.wait, [&] { l.lock.lock(); });
      costs(me, "unlock without a successor", h.release, [&] { l.lock.unlock(); });
    }
  });
}

// ---- d-mcs ----

TEST(handoff_counts, d_mcs_is_one_put) {
  check<lock::d_mcs>(
      {.machine = topology::flat(2),
       .waiter = 1,
       .level = 1,
       .wait = {.put = 1, .swap = 1, .flush = 2, .loopback = 2, .load = 1, .store = 1},
       .pass = {.put = 1, .flush = 1, .loopback = 1, .load = 2, .store = 1},
       .release = {.cas = 1, .flush = 1, .loopback = 1, .load = 1}});
}

TEST(handoff_counts, d_mcs_between_nodes) {
  check<lock::d_mcs>({.machine = topology::balanced({2, 1}),
                      .waiter = 1,
                      .level = 1,
                      .wait = {.put = 1, .swap = 1, .flush = 2, .load = 1, .store = 1},
                      .pass = {.put = 1, .flush = 1, .load = 2, .store = 1},
                      .release = {.cas = 1, .flush = 1, .load = 1}});
}

// The successor has swapped the tail and not yet written its link: one compare-swap in vain.
TEST(handoff_counts, d_mcs_to_a_successor_that_is_not_yet_linked) {
  on_every_rank(topology::flat(2), [](counted_participant& me) {
    rma::barrier both(me);
    placed<lock::d_mcs> l(me);
    const auto holder_waits = me.cells().take<rma::plain_cell>(1);
    if (me.rank() == 0) {
      l.lock.lock();
      const rma::word own = rma::get_now(uncounted(me), l.cells.tail);
      both.arrive_and_wait();
      watch(me, l.cells.tail, rma::differs_from(own));
      hooks(me).before_await = [&] { rma::put_now(uncounted(me), holder_waits, 1); };
      costs(me, "unlock with a successor that is not yet linked",
            {.put = 1, .cas = 1, .flush = 2, .loopback = 2, .load = 3, .store = 1},
            [&] { l.lock.unlock(); });
    } else {
      both.arrive_and_wait();
      hooks(me).before_put = [&] { watch(me, holder_waits, rma::equals(1)); };  // the link
      l.lock.lock();
    }
  });
}

// ---- dq ----

// The first compare-swap reads the tail, the second replaces it.
TEST(handoff_counts, dq_is_one_put) {
  check<lock::dq>({.machine = topology::balanced({2, 1}),
                   .waiter = 1,
                   .level = 1,
                   .wait = {.put = 1, .cas = 2, .flush = 3, .load = 1, .store = 1},
                   .pass = {.put = 1, .flush = 1, .load = 2, .store = 1},
                   .release = {.cas = 1, .flush = 1, .load = 1}});
}

// ---- rma-mcs ----

TEST(handoff_counts, rma_mcs_one_level_is_one_put) {
  check<lock::rma_mcs>(
      {.machine = topology::flat(2),
       .waiter = 1,
       .level = 1,
       .wait = {.put = 1, .swap = 1, .flush = 2, .loopback = 2, .load = 1, .store = 1},
       .pass = {.put = 1, .flush = 1, .loopback = 1, .load = 1, .store = 1},
       .release = {.cas = 1, .flush = 1, .loopback = 1, .load = 1}});
}

const operation_counts waits_in_own_element{
    .put = 1, .swap = 1, .flush = 2, .loopback = 2, .load = 1, .store = 1};

TEST(handoff_counts, rma_mcs_two_levels_inside_an_element_is_one_put) {
  check<lock::rma_mcs>({.machine = topology::balanced({2, 2}),
                        .waiter = 1,
                        .level = 2,
                        .wait = waits_in_own_element,
                        .pass = {.put = 1, .flush = 1, .loopback = 1, .load = 1, .store = 1},
                        .release = {.cas = 2, .flush = 2, .loopback = 2, .load = 2}});
}

// One put, and a compare-swap to leave the element's queue.
TEST(handoff_counts, rma_mcs_two_levels_between_elements) {
  check<lock::rma_mcs>(
      {.machine = topology::balanced({2, 2}),
       .waiter = 2,
       .level = 1,
       .wait = {.put = 1, .swap = 2, .flush = 3, .loopback = 1, .load = 1, .store = 1},
       .pass = {.put = 1, .cas = 1, .flush = 2, .loopback = 1, .load = 2, .store = 1},
       .release = {.cas = 2, .flush = 2, .loopback = 1, .load = 2}});
}

// T_L,2 = 0: never inside the element. The holder releases the root and sends its successor there.
TEST(handoff_counts, rma_mcs_two_levels_at_its_threshold) {
  check<lock::rma_mcs>(
      {.machine = topology::balanced({2, 2}),
       .waiter = 1,
       .level = 2,
       .wait = {.put = 1, .swap = 2, .flush = 3, .loopback = 3, .load = 1, .store = 1},
       .pass = {.put = 1, .cas = 1, .flush = 2, .loopback = 2, .load = 2, .store = 1},
       .release = {.cas = 2, .flush = 2, .loopback = 2, .load = 2}},
      {.t_l = {0, 0, 0, 0}});
}

TEST(handoff_counts, rma_mcs_three_levels_inside_an_element_is_one_put) {
  check<lock::rma_mcs>({.machine = topology::balanced({2, 2, 2}),
                        .waiter = 1,
                        .level = 3,
                        .wait = waits_in_own_element,
                        .pass = {.put = 1, .flush = 1, .loopback = 1, .load = 1, .store = 1},
                        .release = {.cas = 3, .flush = 3, .loopback = 3, .load = 3}});
}

// Rank 2 is on another node than the leader of its element of level 2: the root's release reads the
// element's entry with a get.
TEST(handoff_counts, rma_mcs_three_levels_inside_an_element_of_level_2) {
  check<lock::rma_mcs>(
      {.machine = topology::balanced({2, 2, 2}),
       .waiter = 2,
       .level = 2,
       .wait = {.put = 1, .swap = 2, .flush = 3, .loopback = 1, .load = 1, .store = 1},
       .pass = {.put = 1, .cas = 1, .flush = 2, .loopback = 1, .load = 2, .store = 1},
       .release = {.get = 1, .cas = 3, .flush = 4, .loopback = 1, .load = 2}});
}

TEST(handoff_counts, rma_mcs_three_levels_between_elements_of_level_2) {
  check<lock::rma_mcs>(
      {.machine = topology::balanced({2, 2, 2}),
       .waiter = 4,
       .level = 1,
       .wait = {.put = 1, .swap = 3, .flush = 4, .loopback = 2, .load = 1, .store = 1},
       .pass = {.put = 1, .cas = 2, .flush = 3, .loopback = 2, .load = 3, .store = 1},
       .release = {.cas = 3, .flush = 3, .loopback = 2, .load = 3}});
}

// ---- rma-rw: writers ----

TEST(handoff_counts, rma_rw_between_writers_is_one_put) {
  check<lock::rma_rw>({.machine = topology::flat(2),
                       .waiter = 1,
                       .level = 1,
                       .wait = waits_in_own_element,
                       .pass = {.put = 1, .flush = 1, .loopback = 1, .load = 1, .store = 1},
                       // Two counters are given to the readers.
                       .release = {.add = 2, .cas = 1, .flush = 2, .loopback = 3, .load = 1}});
}

TEST(handoff_counts, rma_rw_two_levels_inside_an_element_is_one_put) {
  check<lock::rma_rw>({.machine = topology::balanced({2, 2}),
                       .waiter = 1,
                       .level = 2,
                       .wait = waits_in_own_element,
                       .pass = {.put = 1, .flush = 1, .loopback = 1, .load = 1, .store = 1},
                       .release = {.add = 2, .cas = 2, .flush = 3, .loopback = 3, .load = 2}});
}

TEST(handoff_counts, rma_rw_between_elements) {
  check<lock::rma_rw>(
      {.machine = topology::balanced({2, 2}),
       .waiter = 2,
       .level = 1,
       .wait = {.put = 1, .swap = 2, .flush = 3, .loopback = 1, .load = 1, .store = 1},
       .pass = {.put = 1, .cas = 1, .flush = 2, .loopback = 1, .load = 2, .store = 1},
       .release = {.add = 2, .cas = 2, .flush = 3, .loopback = 2, .load = 2}});
}

// T_L,1 = 1: every writer gives the lock to the readers (C adds), and its successor takes it from
// them again (3 C gets, C fetch-adds).
TEST(handoff_counts, rma_rw_through_the_readers) {
  check<lock::rma_rw>(
      {.machine = topology::flat(2),
       .waiter = 1,
       .level = 1,
       .wait = {.put = 1,
                .get = 6,
                .fetch_add = 2,
                .swap = 1,
                .flush = 5,
                .loopback = 10,
                .load = 1,
                .store = 1},
       .pass = {.put = 1, .add = 2, .flush = 2, .loopback = 3, .load = 1, .store = 1},
       .release = {.add = 2, .cas = 1, .flush = 2, .loopback = 3, .load = 1}},
      {.t_l = {1, 0, 0, 0}});
}

// ---- rma-rw: a reader behind a writer ----

// It withdraws, waits on its own node without a network operation, and tries once more.
TEST(handoff_counts, rma_rw_reader_waits_locally) {
  on_every_rank(topology::balanced({2, 1}), [](counted_participant& me) {
    rma::barrier both(me);
    placed<lock::rma_rw> l(me);
    const auto reader_waits = me.cells().take<rma::plain_cell>(1);
    if (me.rank() == 0) {
      l.lock.lock();
      both.arrive_and_wait();
      watch(me, reader_waits, rma::equals(1));
      l.lock.unlock();
    } else {
      both.arrive_and_wait();
      hooks(me).before_await = [&] { rma::put_now(uncounted(me), reader_waits, 1); };
      costs(me, "lock_shared behind a writer",
            {.add = 1, .fetch_add = 2, .flush = 3, .loopback = 3, .load = 1},
            [&] { l.lock.lock_shared(); });
    }
  });
}

}  // namespace
}  // namespace lockflight::test
