// rma-rw's exact costs, uncontended and when an attempt fails, with C counters.
#include <gtest/gtest.h>

#include <cstdint>
#include <utility>

#include "counts.hpp"
#include "lockflight/lock/rma_rw.hpp"

namespace lockflight::test {
namespace {

using rma::topology;
using rma_rw = placed<lock::rma_rw>;
using parameters = rma_rw::parameters;

/// A machine of one node, with a number of levels and counters, for rank 0.
struct shape {
  topology machine;
  std::int64_t t_dc;
  std::uint64_t levels, counters;
};

const shape one_node_shapes[] = {
    {topology::flat(1), 0, 1, 1},
    {topology::flat(4), 0, 1, 4},  // one node: a counter on each rank
    {topology::flat(4), 2, 1, 2},
    {topology::flat(4), 4, 1, 1},
    {topology::balanced({2, 2}, 1), 1, 2, 4},
    {topology::balanced({2, 2}, 1), 3, 2, 2},
    {topology::balanced({2, 2, 2}, 1), 0, 3, 8},
    {topology::balanced({2, 2, 2}, 1), 8, 3, 1},
};

// Acquire: N swaps, then three rounds over the counters: 2 C gets, C fetch-adds, C gets. Release: C
// adds in one round, N compare-swaps.
TEST(rma_rw_counts, writer) {
  for (const shape& s : one_node_shapes) {
    const std::uint64_t n = s.levels, c = s.counters;
    SCOPED_TRACE(testing::Message() << n << " levels, " << c << " counters");
    on_every_rank(s.machine, [&](counted_participant& me) {
      if (me.rank() != 0) return;
      rma_rw l(me, parameters{.t_dc = s.t_dc});
      const operation_counts acquire{
          .get = 3 * c, .fetch_add = c, .swap = n, .flush = n + 3, .loopback = n + 4 * c};
      const operation_counts release{
          .add = c, .cas = n, .flush = n + 1, .loopback = n + c, .load = n};
      costs(me, "lock", acquire, [&] { l.lock.lock(); });
      costs(me, "unlock", release, [&] { l.lock.unlock(); });

      operation_counts tried = acquire;
      tried.cas += std::exchange(tried.swap, 0);
      costs(me, "try_lock", tried, [&] { require(l.lock.try_lock(), "it is free"); });
      costs(me, "unlock after try_lock", release, [&] { l.lock.unlock(); });
    });
  }
}

TEST(rma_rw_counts, reader) {
  for (const shape& s : one_node_shapes)
    on_every_rank(s.machine, [&](counted_participant& me) {
      rma_rw l(me, parameters{.t_dc = s.t_dc});
      const operation_counts acquire{.fetch_add = 1, .flush = 1, .loopback = 1};
      const operation_counts release{.add = 1, .flush = 1, .loopback = 1};
      costs(me, "lock_shared", acquire, [&] { l.lock.lock_shared(); });
      costs(me, "unlock_shared", release, [&] { l.lock.unlock_shared(); });
      operation_counts tried = acquire;
      tried.load = 1;  // the read before the ticket
      costs(me, "try_lock_shared", tried, [&] { require(l.lock.try_lock_shared(), "free"); });
      costs(me, "unlock_shared", release, [&] { l.lock.unlock_shared(); });
    });
}

// Two nodes of two ranks, a counter at each node's leader.
TEST(rma_rw_counts, two_nodes) {
  on_every_rank(topology::balanced({2, 2}), [](counted_participant& me) {
    rma::barrier all(me);
    rma_rw l(me);
    for (rma::rank_t turn = 0; turn < 4; ++turn, all.arrive_and_wait()) {
      if (turn != me.rank()) continue;
      const std::uint64_t tails_here = turn < 2 ? 2 : 1;
      costs(me, "lock",
            {.get = 6, .fetch_add = 2, .swap = 2, .flush = 5, .loopback = tails_here + 4},
            [&] { l.lock.lock(); });
      costs(me, "unlock", {.add = 2, .cas = 2, .flush = 3, .loopback = tails_here + 1, .load = 2},
            [&] { l.lock.unlock(); });
    }
    // Readers never leave their node.
    costs(me, "lock_shared", {.fetch_add = 1, .flush = 1, .loopback = 1},
          [&] { l.lock.lock_shared(); });
    costs(me, "unlock_shared", {.add = 1, .flush = 1, .loopback = 1},
          [&] { l.lock.unlock_shared(); });
  });
}

// A counter at rank 0 only: the second node's readers go there.
TEST(rma_rw_counts, reader_of_a_counter_on_another_node) {
  on_every_rank(topology::balanced({2, 2}), [](counted_participant& me) {
    rma_rw l(me, parameters{.t_dc = 4});
    const std::uint64_t loopback = me.rank() < 2 ? 1 : 0;
    costs(me, "lock_shared", {.fetch_add = 1, .flush = 1, .loopback = loopback},
          [&] { l.lock.lock_shared(); });
    costs(me, "unlock_shared", {.add = 1, .flush = 1, .loopback = loopback},
          [&] { l.lock.unlock_shared(); });
  });
}

// After readers, a writer subtracts those that have left: 2 adds for each counter that they used.
TEST(rma_rw_counts, writer_after_readers) {
  on_every_rank(topology::flat(4), [](counted_participant& me) {
    rma::barrier all(me);
    rma_rw l(me);
    if (me.rank() < 3) {
      l.lock.lock_shared();
      l.lock.unlock_shared();
    }
    all.arrive_and_wait();
    if (me.rank() == 3) {
      costs(me, "lock after three readers",
            {.get = 12, .add = 6, .fetch_add = 4, .swap = 1, .flush = 5, .loopback = 23},
            [&] { l.lock.lock(); });
      l.lock.unlock();
      costs(me, "lock after a writer",
            {.get = 12, .fetch_add = 4, .swap = 1, .flush = 4, .loopback = 17},
            [&] { l.lock.lock(); });
    }
  });
}

// T_L,1 = 2: of three writers in a row, the first hands the lock over, and the second gives it to
// the readers (C adds).
TEST(rma_rw_counts, every_second_writer_gives_the_lock_to_the_readers) {
  on_every_rank(topology::flat(3), [](counted_participant& me) {
    rma::barrier all(me);
    rma_rw l(me, parameters{.t_l = {2, 0, 0, 0}});
    const auto waiting = me.cells().take<rma::plain_cell>(1);  // the last rank that waits
    if (me.rank() == 0) l.lock.lock();
    all.arrive_and_wait();
    if (me.rank() > 0) {
      watch(me, waiting, rma::equals(static_cast<rma::word>(me.rank() - 1)));
      hooks(me).before_await = [&] {
        rma::put_now(uncounted(me), waiting, static_cast<rma::word>(me.rank()));
      };
      l.lock.lock();
      hooks(me).before_await = nullptr;
    } else {
      watch(me, waiting, rma::equals(2));
    }
    operation_counts release{.put = 1, .flush = 1, .loopback = 1, .load = 1, .store = 1};
    if (me.rank() == 1) release.add = 3, release.flush = 2, release.loopback = 4;
    if (me.rank() < 2)
      costs(me, "unlock with a successor", release, [&] { l.lock.unlock(); });
    else
      l.lock.unlock();
  });
}

// ---- at T_R, by one rank: a second handle is a second holder of its own ----

TEST(rma_rw_counts, reader_that_resets_its_counter) {
  on_every_rank(topology::flat(1), [](counted_participant& me) {
    rma_rw l(me, parameters{.t_r = 1});
    l.lock.lock_shared();
    l.lock.unlock_shared();
    // Its ticket, a read of the writers' queue, and the departures moved from one word to the
    // other.
    costs(me, "lock_shared at T_R",
          {.get = 1, .add = 1, .fetch_add = 1, .swap = 1, .flush = 4, .loopback = 4},
          [&] { l.lock.lock_shared(); });
  });
}

TEST(rma_rw_counts, failed_shared_attempt) {
  on_every_rank(topology::flat(1), [](counted_participant& me) {
    const parameters set{.t_r = 1};
    rma_rw l(me, set);
    rma_rw::lock_type other(me, l.cells, set);

    l.lock.lock();
    costs(me, "try_lock_shared beside a writer", {.load = 1},
          [&] { require(!other.try_lock_shared(), "a writer is in"); });
    l.lock.unlock();

    l.lock.lock_shared();
    costs(me, "try_lock_shared at T_R, nobody having left",
          {.get = 1, .add = 1, .fetch_add = 1, .swap = 1, .flush = 4, .loopback = 4, .load = 1},
          [&] { require(!other.try_lock_shared(), "T_R readers are in"); });
    l.lock.unlock_shared();
  });
}

TEST(rma_rw_counts, failed_exclusive_attempt) {
  on_every_rank(topology::balanced({2, 2}), [](counted_participant& me) {
    rma::barrier all(me);
    rma_rw l(me);
    const auto attempt = [&] { require(!l.lock.try_lock(), "somebody is in"); };

    if (me.rank() == 0) l.lock.lock();
    all.arrive_and_wait();
    if (me.rank() == 1)  // fails at the first queue
      costs(me, "try_lock beside a writer in its element", {.cas = 1, .flush = 1, .loopback = 1},
            attempt);
    if (me.rank() == 2)  // fails at the root, leaves its element's queue
      costs(me, "try_lock beside a writer elsewhere", {.cas = 3, .flush = 3, .loopback = 2},
            attempt);
    all.arrive_and_wait();

    if (me.rank() == 0) {
      l.lock.unlock();
      l.lock.lock_shared();
    }
    all.arrive_and_wait();
    if (me.rank() == 1)  // up, one read of the counters, down
      costs(me, "try_lock beside a reader", {.get = 4, .cas = 4, .flush = 5, .loopback = 6},
            attempt);
  });
}

// T_R readers have entered, so the attempt takes the counters, sees that a reader is still in, and
// gives them back.
TEST(rma_rw_counts, failed_exclusive_attempt_at_t_r) {
  on_every_rank(topology::flat(1), [](counted_participant& me) {
    const parameters set{.t_r = 1};
    rma_rw l(me, set);
    rma_rw::lock_type other(me, l.cells, set);
    l.lock.lock_shared();
    costs(me, "try_lock beside T_R readers",
          {.get = 3, .add = 1, .fetch_add = 1, .cas = 2, .flush = 6, .loopback = 7},
          [&] { require(!other.try_lock(), "a reader is in"); });
    l.lock.unlock_shared();
    require(other.try_lock(), "nobody is in");
  });
}

}  // namespace
}  // namespace lockflight::test
