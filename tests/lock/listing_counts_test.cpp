// The exact costs of the locks as printed, beside those of the locks that they became: uncontended,
// and where one participant hands over to another.
#include <gtest/gtest.h>

#include "counts.hpp"
#include "lab/printed/alock_listing.hpp"
#include "lab/printed/mcs_listing.hpp"
#include "lab/printed/mcs_rw_wp_listing.hpp"
#include "lab/printed/rma_rw_listing.hpp"

namespace lockflight::test {
namespace {

using rma::topology;

const topology home_and_far = topology::balanced({2, 1});  // the home is rank 0's node

/// Rank 0 holds the lock until rank 1 waits for it in a queue.
template <template <class> class Lock, class Hold, class Release, class Take>
void hand_over(const topology& machine, rma::rank_t holder, rma::rank_t waiter, Hold hold,
               const operation_counts& pass, Release release, const operation_counts& wait,
               Take take) {
  on_every_rank(machine, [&](counted_participant& me) {
    rma::barrier all(me);
    placed<Lock> l(me);
    const auto waits = me.cells().take<rma::plain_cell>(1);
    if (me.rank() == holder) hold(l.lock);
    all.arrive_and_wait();
    if (me.rank() == holder) {
      watch(me, waits.at(0), rma::equals(1));
      costs(me, "the release", pass, [&] { release(l.lock); });
    } else if (me.rank() == waiter) {
      hooks(me).before_await = [&] { rma::put_now(uncounted(me), waits.at(0), 1); };
      costs(me, "the acquire", wait, [&] { take(l.lock); });
    }
  });
}

constexpr auto write_lock = [](auto& l) { l.lock(); };
constexpr auto write_unlock = [](auto& l) { l.unlock(); };
constexpr auto read_lock = [](auto& l) { l.lock_shared(); };
constexpr auto read_unlock = [](auto& l) { l.unlock_shared(); };

// ---- mcs-rw-wp-listing: a shared acquire is five operations where ours is one ----

TEST(listing_counts, wp_uncontended) {
  on_every_rank(home_and_far, [](counted_participant& me) {
    placed<lock::mcs_rw_wp_listing> l(me);
    if (me.rank() != 1) return;
    const operation_counts enter{
        .get = 1, .fetch_add = 2, .swap = 2, .flush = 5, .load = 1, .store = 2};
    const operation_counts leave{.fetch_add = 1, .flush = 1};
    costs(me, "lock_shared", enter, [&] { l.lock.lock_shared(); });
    costs(me, "lock_shared beside a reader", enter, [&] { l.lock.lock_shared(); });
    costs(me, "unlock_shared", leave, [&] { l.lock.unlock_shared(); });
    costs(me, "unlock_shared", leave, [&] { l.lock.unlock_shared(); });
    costs(me, "lock", {.put = 1, .fetch_add = 2, .swap = 1, .flush = 4, .load = 1, .store = 2},
          [&] { l.lock.lock(); });
    costs(me, "unlock", {.fetch_add = 1, .cas = 1, .flush = 2, .load = 1},
          [&] { l.lock.unlock(); });
  });
}

TEST(listing_counts, wp_writer_to_writer_is_one_put) {
  hand_over<lock::mcs_rw_wp_listing>(
      home_and_far, 0, 1, write_lock, {.put = 1, .flush = 1, .load = 1, .store = 1}, write_unlock,
      {.put = 1, .swap = 1, .flush = 2, .load = 1, .store = 1}, write_lock);
}

// The last reader reads which writer it wakes.
TEST(listing_counts, wp_reader_to_writer) {
  hand_over<lock::mcs_rw_wp_listing>(
      home_and_far, 0, 1, read_lock,
      {.put = 1, .get = 1, .fetch_add = 1, .flush = 3, .loopback = 2}, read_unlock,
      {.put = 1, .fetch_add = 2, .swap = 1, .flush = 4, .load = 1, .store = 1}, write_lock);
}

TEST(listing_counts, wp_writer_to_reader) {
  hand_over<lock::mcs_rw_wp_listing>(
      home_and_far, 0, 1, write_lock,
      {.put = 1,
       .get = 1,
       .fetch_add = 2,
       .swap = 1,
       .cas = 1,
       .flush = 6,
       .loopback = 5,
       .load = 1},
      write_unlock, {.fetch_add = 1, .swap = 1, .flush = 2, .load = 1, .store = 1}, read_lock);
}

// ---- alock-listing: the victim always, and a compare-and-swap before each handoff ----

TEST(listing_counts, alock_uncontended) {
  on_every_rank(two_nodes, [](counted_participant& me) {
    rma::barrier all(me);
    placed<lock::alock_listing> l(me);
    for (rma::rank_t turn = 0; turn < 4; ++turn, all.arrive_and_wait()) {
      if (turn != me.rank()) continue;
      const bool local = turn < 2;
      costs(me, "lock",
            local ? operation_counts{.load = 1, .store = 1, .rmw = 1}
                  : operation_counts{.put = 1, .get = 1, .cas = 1, .flush = 3},
            [&] { l.lock.lock(); });
      costs(me, "unlock",
            local ? operation_counts{.rmw = 1} : operation_counts{.cas = 1, .flush = 1},
            [&] { l.lock.unlock(); });
    }
  });
}

// The swap of the second takes two attempts. With a budget of two the lock is passed without a look
// at the other cohort.
TEST(listing_counts, alock_handoffs) {
  hand_over<lock::alock_listing>(two_nodes, 0, 1, write_lock, {.load = 1, .store = 2, .rmw = 1},
                                 write_unlock, {.load = 1, .store = 2, .rmw = 2}, write_lock);
  hand_over<lock::alock_listing>(
      two_nodes, 2, 3, write_lock,
      {.put = 1, .cas = 1, .flush = 2, .loopback = 1, .load = 1, .store = 1}, write_unlock,
      {.put = 1, .cas = 2, .flush = 3, .loopback = 1, .load = 1, .store = 1}, write_lock);
}

// A remote head that waits for a local holder polls with two gets, one after the other.
TEST(listing_counts, alock_remote_head_against_a_local_holder) {
  on_every_rank(two_nodes, [](counted_participant& me) {
    rma::barrier all(me);
    placed<lock::alock_listing> l(me);
    if (me.rank() == 0) l.lock.lock();
    all.arrive_and_wait();
    if (me.rank() == 0) {
      constexpr rma::word remote_cohort = 2;
      watch(me, l.cells.victim, rma::equals(remote_cohort));
      l.lock.unlock();
    } else if (me.rank() == 2) {
      me.port().reset_counts();
      l.lock.lock();
      const operation_counts spent = me.port().counts();
      require(spent.cas == 1 && spent.put == 1, "one attempt at the swap, then the victim");
      require(spent.get % 2 == 1, "the last poll finds the other tail null");
      require(spent.network() == spent.cas + spent.put + spent.get, "and nothing else");
      require(spent.flush == spent.network(), "one after the other");
      l.lock.unlock();
    }
  });
}

TEST(listing_counts, alock_local_participants_never_use_the_network) {
  on_every_rank(two_nodes, [](counted_participant& me) {
    rma::barrier all(me);
    placed<lock::alock_listing> l(me, {.local_budget = 1, .remote_budget = 1});
    all.arrive_and_wait();
    me.port().reset_counts();
    for (int i = 0; i < 500; ++i) {
      l.lock.lock();
      l.lock.unlock();
    }
    const operation_counts spent = me.port().counts();
    all.arrive_and_wait();
    const bool local = me.rank() < 2;
    require(local == (spent.network() == 0), "only the remote cohort uses the network");
    require(local == (spent.rmw > 0), "only the local cohort uses CPU atomics");
  });
}

// ---- mcs-listing: as alock-listing's remote cohort, without a victim ----

TEST(listing_counts, mcs) {
  on_every_rank(home_and_far, [](counted_participant& me) {
    placed<lock::mcs_listing> l(me);
    if (me.rank() != 1) return;
    costs(me, "lock", {.cas = 1, .flush = 1}, [&] { l.lock.lock(); });
    costs(me, "unlock", {.cas = 1, .flush = 1}, [&] { l.lock.unlock(); });
  });
  hand_over<lock::mcs_listing>(
      home_and_far, 0, 1, write_lock,
      {.put = 1, .cas = 1, .flush = 2, .loopback = 1, .load = 1, .store = 1}, write_unlock,
      {.put = 1, .cas = 2, .flush = 3, .load = 1, .store = 1}, write_lock);
}

// ---- rma-rw-listing: a writer goes to the counters one by one ----

TEST(listing_counts, rma_rw_writer_visits_one_counter_after_the_other) {
  on_every_rank(home_and_far, [](counted_participant& me) {
    rma::barrier all(me);
    placed<lock::rma_rw_listing> printed(me);
    placed<lock::rma_rw_listing> mended(me, {.mend_1 = 1});
    if (me.rank() != 1) return;
    const auto spent_on = [&](auto& l) {
      me.port().reset_counts();
      l.lock.lock();
      return me.port().counts();
    };
    const operation_counts without = spent_on(printed);
    const operation_counts with = spent_on(mended);
    require(without.add == 2 && with.add == 2, "one addition a counter");
    require(with.get == without.get + 4, "mend 1 reads both halves of each counter");
    require(with.flush == without.flush + 4, "one after the other");
    printed.lock.unlock();
    mended.lock.unlock();
  });
}

}  // namespace
}  // namespace lockflight::test
