// The exact costs of alock: participants on the home's node issue no network operation, whatever
// happens, and the others' costs are those of its header. Its competitors, spin and d-mcs, go
// through the network for everything, from the home's node as loopback.
#include <gtest/gtest.h>

#include "counts.hpp"
#include "lockflight/lock/alock.hpp"
#include "lockflight/lock/d_mcs.hpp"
#include "lockflight/lock/spin.hpp"

namespace lockflight::test {
namespace {

using rma::topology;
using alock = placed<lock::alock>;

TEST(alock_counts, uncontended) {
  on_every_rank(two_nodes, [](counted_participant& me) {
    rma::barrier all(me);
    alock l(me);
    for (rma::rank_t turn = 0; turn < 4; ++turn, all.arrive_and_wait()) {
      if (turn != me.rank()) continue;
      const bool local = turn < 2;
      const operation_counts acquire = local ? operation_counts{.load = 1, .rmw = 1}
                                             : operation_counts{.get = 1, .swap = 1, .flush = 2};
      const operation_counts attempt = local ? operation_counts{.load = 1, .rmw = 1}
                                             : operation_counts{.get = 1, .cas = 1, .flush = 2};
      const operation_counts release = local ? operation_counts{.load = 1, .rmw = 1}
                                             : operation_counts{.cas = 1, .flush = 1, .load = 1};
      costs(me, "lock", acquire, [&] { l.lock.lock(); });
      costs(me, "unlock", release, [&] { l.lock.unlock(); });
      costs(me, "try_lock", attempt, [&] { require(l.lock.try_lock(), "it is free"); });
      costs(me, "unlock after try_lock", release, [&] { l.lock.unlock(); });
    }
  });
}

TEST(alock_counts, failed_attempts) {
  on_every_rank(two_nodes, [](counted_participant& me) {
    rma::barrier all(me);
    alock l(me);
    const auto try_it = [&] { require(!l.lock.try_lock(), "somebody has it"); };
    for (const rma::rank_t holder : {0, 2}) {
      if (me.rank() == holder) l.lock.lock();
      all.arrive_and_wait();
      // In the holder's cohort it fails at the tail, in the other one at the read of the other
      // tail.
      if (me.rank() == 1)
        costs(me, "a local failed attempt",
              holder == 0 ? operation_counts{.rmw = 1}
                          : operation_counts{.load = 2, .store = 1, .rmw = 2},
              try_it);
      if (me.rank() == 3)
        costs(me, "a remote failed attempt",
              holder == 2 ? operation_counts{.cas = 1, .flush = 1}
                          : operation_counts{.put = 1, .get = 1, .cas = 2, .flush = 4, .load = 1},
              try_it);
      all.arrive_and_wait();
      if (me.rank() == holder) l.lock.unlock();
      all.arrive_and_wait();
    }
  });
}

/// `holder` hands over to `waiter`, of the same cohort, and no other participant comes.
void check_handoff(rma::rank_t holder, rma::rank_t waiter, const lock::alock_parameters& set,
                   const operation_counts& wait, const operation_counts& pass) {
  on_every_rank(two_nodes, [&](counted_participant& me) {
    rma::barrier all(me);
    alock l(me, set);
    const auto waits = me.cells().take<rma::plain_cell>(1);
    if (me.rank() == holder) l.lock.lock();
    all.arrive_and_wait();
    if (me.rank() == holder) {
      watch(me, waits.at(0), rma::equals(1));
      costs(me, "unlock with a successor", pass, [&] { l.lock.unlock(); });
    } else if (me.rank() == waiter) {
      hooks(me).before_await = [&] { rma::put_now(uncounted(me), waits.at(0), 1); };
      costs(me, "lock with a predecessor", wait, [&] { l.lock.lock(); });
      l.lock.unlock();
    }
  });
}

const operation_counts local_pass{.load = 1, .store = 2};
const operation_counts remote_pass{.put = 1, .flush = 1, .load = 1, .store = 1};

TEST(alock_counts, handoff_inside_the_local_cohort) {
  check_handoff(0, 1, {.local_budget = 2}, {.load = 1, .store = 2, .rmw = 1}, local_pass);
}

// One put each way; waiting is local. (Both are on one node: the puts are loopback.)
TEST(alock_counts, handoff_inside_the_remote_cohort) {
  operation_counts pass = remote_pass;
  pass.loopback = 1;
  check_handoff(2, 3, {.remote_budget = 2},
                {.put = 1, .swap = 1, .flush = 2, .loopback = 1, .load = 1, .store = 1}, pass);
}

// The budget is used up: the next holder reads whether the other cohort waits.
TEST(alock_counts, handoff_at_the_end_of_a_budget) {
  check_handoff(0, 1, {.local_budget = 1}, {.load = 2, .store = 2, .rmw = 1}, local_pass);
  operation_counts pass = remote_pass;
  pass.loopback = 1;
  check_handoff(2, 3, {.remote_budget = 1},
                {.put = 1, .get = 1, .swap = 1, .flush = 3, .loopback = 1, .load = 1, .store = 1},
                pass);
}

// A head that finds the other cohort's tail set becomes the victim: a put and, for each poll, two
// gets.
TEST(alock_counts, remote_head_against_a_local_holder) {
  on_every_rank(two_nodes, [](counted_participant& me) {
    rma::barrier all(me);
    alock l(me);
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
      require(spent.swap == 1 && spent.put == 1, "one swap, then the victim");
      require(spent.get % 2 == 1 && spent.get >= 3, "one look, then two gets a look");
      require(spent.network() == spent.swap + spent.put + spent.get, "and nothing else");
      l.lock.unlock();
    }
  });
}

/// Rank 0 holds the lock, rank 1 waits behind it, rank 2 heads the other cohort: which is next?
void check_next(const lock::alock_parameters& set, rma::rank_t expected) {
  on_every_rank(two_nodes, [&](counted_participant& me) {
    rma::barrier all(me);
    alock l(me, set);
    const auto waits = me.cells().take<rma::plain_cell>(1);
    const auto entered = me.cells().take<rma::nic_cell>(1);
    if (me.rank() == 0) l.lock.lock();
    all.arrive_and_wait();
    if (me.rank() == 0) {
      watch(me, waits, rma::equals(1));
      watch(me, l.cells.victim, rma::equals(2));
    } else if (me.rank() < 3) {
      hooks(me).before_await = [&] { rma::put_now(uncounted(me), waits, 1); };
      l.lock.lock();
      const rma::word before = rma::fetch_add_now(uncounted(me), entered, 1);
      require((before == 0) == (me.rank() == expected), "the budget decides who is next");
    }
    if (me.rank() < 3) l.lock.unlock();
  });
}

TEST(alock_counts, the_budget_decides_who_is_next) {
  check_next({.local_budget = 2}, /*expected=*/1);
  check_next({.local_budget = 1}, /*expected=*/2);
}

TEST(alock_counts, local_participants_never_use_the_network) {
  on_every_rank(two_nodes, [](counted_participant& me) {
    alock l(me, {.local_budget = 1, .remote_budget = 1});
    const operation_counts spent = everybody_at_once(me, l.lock);
    const bool local = me.rank() < 2;
    require(local == (spent.network() == 0), "only the remote cohort uses the network");
    require(local == (spent.flush == 0), "nor has the local one anything to flush");
    require(local == (spent.rmw > 0), "only the local cohort uses CPU atomics");
  });
}

template <template <class> class Lock>
void goes_through_the_network() {
  on_every_rank(two_nodes, [](counted_participant& me) {
    rma::barrier all(me);
    placed<Lock> l(me);
    all.arrive_and_wait();
    me.port().reset_counts();
    for (int i = 0; i < 50; ++i) {
      l.lock.lock();
      l.lock.unlock();
    }
    const operation_counts spent = me.port().counts();
    require(spent.network() >= 100 && spent.rmw == 0, "every atomic is the network's");
    // Those on the tail are; a link or a handoff goes to the neighbour in the queue.
    if (me.rank() < 2) require(spent.loopback >= 50, "from the home's node as loopback");
    all.arrive_and_wait();
  });
}

TEST(alock_counts, competitors_use_loopback_on_the_home_node) {
  goes_through_the_network<lock::spin>();
  goes_through_the_network<lock::d_mcs>();
}

// The paper's metadata: 64 bytes, whatever the number of participants.
TEST(alock_counts, a_lock_is_one_line) {
  rma::layout in(1024);
  const std::uint32_t before = in.used();
  static_cast<void>(alock::lock_type::cells::place(in, two_nodes, {}, 0));
  EXPECT_EQ(in.used() - before, rma::line_words);
}

}  // namespace
}  // namespace lockflight::test
