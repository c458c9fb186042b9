// The exact costs of mcs-rw-rp, mcs-rw-wp and mcs-rw-fair: uncontended, when an attempt fails, and
// when readers and writers wait for each other.
#include <gtest/gtest.h>

#include "counts.hpp"
#include "lockflight/lock/mcs_rw_fair.hpp"
#include "lockflight/lock/mcs_rw_rp.hpp"
#include "lockflight/lock/mcs_rw_wp.hpp"

namespace lockflight::test {
namespace {

using rma::topology;

/// One rank of another node, alone.
template <template <class> class Lock>
void alone(void (*body)(counted_participant&, placed<Lock>&)) {
  on_every_rank(far_apart, [&](counted_participant& me) {
    placed<Lock> l(me);
    if (me.rank() == 1) body(me, l);
  });
}

template <template <class> class Lock>
void uncontended_costs() {
  alone<Lock>([](counted_participant& me, placed<Lock>& l) {
    const operation_counts one_atomic{.fetch_add = 1, .flush = 1};
    costs(me, "lock_shared", one_atomic, [&] { l.lock.lock_shared(); });
    costs(me, "try_lock_shared beside a reader", one_atomic,
          [&] { require(l.lock.try_lock_shared(), "only readers are in"); });
    costs(me, "try_lock beside readers", {.cas = 3, .flush = 3, .load = 1},
          [&] { require(!l.lock.try_lock(), "readers are in"); });
    costs(me, "unlock_shared", one_atomic, [&] { l.lock.unlock_shared(); });
    costs(me, "unlock_shared", one_atomic, [&] { l.lock.unlock_shared(); });

    const operation_counts release{.fetch_add = 1, .cas = 1, .flush = 2, .load = 1};
    costs(me, "lock", {.swap = 1, .cas = 1, .flush = 2}, [&] { l.lock.lock(); });
    costs(me, "try_lock_shared beside a writer", {.fetch_add = 2, .flush = 2},
          [&] { require(!l.lock.try_lock_shared(), "a writer is in"); });
    costs(me, "unlock", release, [&] { l.lock.unlock(); });
    costs(me, "try_lock", {.cas = 2, .flush = 2}, [&] { require(l.lock.try_lock(), "free"); });
    costs(me, "unlock after try_lock", release, [&] { l.lock.unlock(); });
  });
}

TEST(mcs_rw_counts, rp_uncontended) { uncontended_costs<lock::mcs_rw_rp>(); }
TEST(mcs_rw_counts, wp_uncontended) { uncontended_costs<lock::mcs_rw_wp>(); }

// The tail alone for the first reader; an attempt beside it counts itself instead.
TEST(mcs_rw_counts, fair_uncontended) {
  alone<lock::mcs_rw_fair>([](counted_participant& me, placed<lock::mcs_rw_fair>& l) {
    lock::mcs_rw_fair<counted_port> another(me,
                                            l.cells);  // for a participant that holds it already
    costs(me, "lock_shared", {.swap = 1, .flush = 1, .load = 1, .store = 2},
          [&] { l.lock.lock_shared(); });
    costs(me, "try_lock beside a reader", {.cas = 1, .flush = 1},
          [&] { require(!another.try_lock(), "a reader is in"); });
    costs(me, "unlock_shared", {.cas = 1, .flush = 1, .load = 1, .store = 3},
          [&] { l.lock.unlock_shared(); });

    costs(me, "try_lock_shared", {.cas = 1, .flush = 1},
          [&] { require(l.lock.try_lock_shared(), "it is free"); });
    costs(me, "try_lock beside such a reader", {.cas = 3, .flush = 3, .load = 1, .store = 3},
          [&] { require(!another.try_lock(), "a reader is in"); });
    costs(me, "its unlock_shared", {.fetch_add = 1, .flush = 1}, [&] { l.lock.unlock_shared(); });

    const operation_counts release{.add = 1, .cas = 1, .flush = 2, .load = 1, .store = 3};
    costs(me, "lock", {.swap = 1, .cas = 1, .flush = 2}, [&] { l.lock.lock(); });
    costs(me, "try_lock_shared beside a writer", {.cas = 1, .flush = 1},
          [&] { require(!another.try_lock_shared(), "a writer is in"); });
    costs(me, "unlock", release, [&] { l.lock.unlock(); });
    costs(me, "try_lock", {.cas = 2, .flush = 2}, [&] { require(l.lock.try_lock(), "free"); });
    costs(me, "unlock after try_lock", release, [&] { l.lock.unlock(); });
  });
}

/// Rank 0 holds the lock until rank 1 waits for it on its own node.
template <template <class> class Lock>
struct turn {
  void (*hold)(Lock<counted_port>&);
  void (*release)(Lock<counted_port>&);
  void (*take)(Lock<counted_port>&);
  operation_counts wait, pass;  // rank 1's, rank 0's

  void check() const {
    on_every_rank(far_apart, [this](counted_participant& me) {
      rma::barrier both(me);
      placed<Lock> l(me);
      const auto waits = me.cells().take<rma::plain_cell>(1);
      if (me.rank() == 0) {
        hold(l.lock);
        both.arrive_and_wait();
        watch(me, waits, rma::equals(1));
        costs(me, "the release", pass, [&] { release(l.lock); });
      } else {
        both.arrive_and_wait();
        hooks(me).before_await = [&] { rma::put_now(uncounted(me), waits, 1); };
        costs(me, "the acquire", wait, [&] { take(l.lock); });
      }
    });
  }
};

constexpr auto exclusive = [](auto& l) { l.lock(); };
constexpr auto end_exclusive = [](auto& l) { l.unlock(); };
constexpr auto shared = [](auto& l) { l.lock_shared(); };
constexpr auto end_shared = [](auto& l) { l.unlock_shared(); };

const operation_counts writer_behind_a_writer{
    .put = 1, .swap = 1, .flush = 2, .load = 1, .store = 1};
const operation_counts writer_behind_a_reader{
    .put = 1, .fetch_add = 1, .swap = 1, .cas = 1, .flush = 4, .load = 1, .store = 1};

// It reads the state, then one put.
TEST(mcs_rw_counts, rp_writer_to_writer) {
  turn<lock::mcs_rw_rp>{exclusive,
                        end_exclusive,
                        exclusive,
                        writer_behind_a_writer,
                        {.put = 1, .get = 1, .flush = 2, .loopback = 1, .load = 1, .store = 1}}
      .check();
}
TEST(mcs_rw_counts, wp_writer_to_writer_is_one_put) {
  turn<lock::mcs_rw_wp>{exclusive,
                        end_exclusive,
                        exclusive,
                        writer_behind_a_writer,
                        {.put = 1, .flush = 1, .load = 1, .store = 1}}
      .check();
}

TEST(mcs_rw_counts, rp_reader_to_writer) {
  turn<lock::mcs_rw_rp>{shared,
                        end_shared,
                        exclusive,
                        writer_behind_a_reader,
                        {.put = 1, .get = 1, .fetch_add = 1, .cas = 1, .flush = 4, .loopback = 3}}
      .check();
}
TEST(mcs_rw_counts, wp_reader_to_writer) {
  turn<lock::mcs_rw_wp>{shared,
                        end_shared,
                        exclusive,
                        writer_behind_a_reader,
                        {.put = 1, .get = 1, .fetch_add = 1, .cas = 1, .flush = 4, .loopback = 3}}
      .check();
}

TEST(mcs_rw_counts, rp_writer_to_reader) {
  turn<lock::mcs_rw_rp>{
      exclusive,
      end_exclusive,
      shared,
      {.get = 1, .fetch_add = 1, .swap = 1, .flush = 3, .load = 1, .store = 1},
      {.put = 1, .fetch_add = 1, .swap = 1, .cas = 1, .flush = 4, .loopback = 3, .load = 1}}
      .check();
}
// The reader withdraws, and as the first of its group makes it known.
TEST(mcs_rw_counts, wp_writer_to_reader) {
  turn<lock::mcs_rw_wp>{
      exclusive,
      end_exclusive,
      shared,
      {.fetch_add = 3, .swap = 1, .flush = 4, .load = 1, .store = 1},
      {.put = 1, .fetch_add = 1, .swap = 1, .cas = 2, .flush = 5, .loopback = 4, .load = 1}}
      .check();
}

TEST(mcs_rw_counts, fair_writer_to_writer_is_one_put) {
  turn<lock::mcs_rw_fair>{exclusive,
                          end_exclusive,
                          exclusive,
                          writer_behind_a_writer,
                          {.put = 1, .flush = 1, .load = 1, .store = 3}}
      .check();
}
// The reader alone is not counted; it makes the writer known, and lets it in at once.
TEST(mcs_rw_counts, fair_reader_to_writer) {
  turn<lock::mcs_rw_fair>{
      shared,
      end_shared,
      exclusive,
      writer_behind_a_writer,
      {.put = 2, .fetch_add = 1, .flush = 3, .loopback = 2, .load = 1, .store = 3}}
      .check();
}
TEST(mcs_rw_counts, fair_writer_to_reader) {
  turn<lock::mcs_rw_fair>{exclusive,
                          end_exclusive,
                          shared,
                          {.put = 1, .swap = 1, .flush = 2, .load = 2, .store = 1},
                          {.put = 1, .add = 1, .flush = 2, .loopback = 1, .load = 1, .store = 3}}
      .check();
}

// The second reader counts both; each subtracts itself when it leaves.
TEST(mcs_rw_counts, fair_reader_beside_a_reader) {
  on_every_rank(far_apart, [](counted_participant& me) {
    rma::barrier both(me);
    placed<lock::mcs_rw_fair> l(me);
    if (me.rank() == 0) l.lock.lock_shared();
    both.arrive_and_wait();
    if (me.rank() == 1)
      costs(me, "lock_shared beside a reader",
            {.put = 2, .get = 1, .add = 1, .swap = 1, .flush = 5, .load = 1, .store = 2},
            [&] { l.lock.lock_shared(); });
    both.arrive_and_wait();
    if (me.rank() == 0)
      costs(me, "unlock_shared of the first",
            {.fetch_add = 1, .flush = 1, .loopback = 1, .load = 1, .store = 3},
            [&] { l.lock.unlock_shared(); });
    both.arrive_and_wait();
    if (me.rank() == 1)
      costs(me, "unlock_shared of the last",
            {.fetch_add = 1, .cas = 1, .flush = 2, .load = 1, .store = 3},
            [&] { l.lock.unlock_shared(); });
  });
}

}  // namespace
}  // namespace lockflight::test
