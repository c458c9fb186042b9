// The exact costs of farlock: participants on the home's node issue no network operation, and the
// others' costs are those of its header, with ordered posts and without.
#include <gtest/gtest.h>

#include <stdexcept>

#include "counts.hpp"
#include "lockflight/lock/farlock.hpp"

namespace lockflight::test {
namespace {

using farlock = placed<lock::farlock>;

/// Flushes of a remote acquire of a free lock.
void uncontended(bool has_order, std::uint64_t flushes) {
  on_every_rank(two_nodes, [=](counted_participant& me) {
    hooks(me).has_order = has_order;
    rma::barrier all(me);
    farlock l(me);
    for (rma::rank_t turn = 0; turn < 4; ++turn, all.arrive_and_wait()) {
      if (turn != me.rank()) continue;
      const bool local = turn < 2;
      const operation_counts acquire =
          local ? operation_counts{.load = 5, .store = 4, .rmw = 1}
                : operation_counts{
                      .put = 3, .get = 3, .swap = 1, .flush = flushes, .load = 2, .store = 1};
      operation_counts attempt = acquire;
      std::swap(attempt.cas, attempt.swap);
      const operation_counts release =
          local ? operation_counts{.load = 1, .store = 2, .rmw = 1}
                : operation_counts{.put = 1, .cas = 1, .flush = 1, .load = 1, .store = 1};
      costs(me, "lock", acquire, [&] { l.lock.lock(); });
      costs(me, "unlock", release, [&] { l.lock.unlock(); });
      costs(me, "try_lock", attempt, [&] { require(l.lock.try_lock(), "it is free"); });
      costs(me, "unlock after try_lock", release, [&] { l.lock.unlock(); });
    }
  });
}

TEST(farlock_counts, uncontended) { uncontended(/*has_order=*/false, /*flushes=*/6); }
TEST(farlock_counts, uncontended_in_three_round_trips) { uncontended(true, 3); }

TEST(farlock_counts, failed_attempts) {
  on_every_rank(two_nodes, [](counted_participant& me) {
    hooks(me).has_order = false;
    rma::barrier all(me);
    farlock l(me);
    const auto try_it = [&] { require(!l.lock.try_lock(), "somebody has it"); };
    for (const rma::rank_t holder : {0, 2}) {
      if (me.rank() == holder) l.lock.lock();
      all.arrive_and_wait();
      // On the holder's side it fails at the tail; on the other one it finds a ticket out.
      if (me.rank() == 1)
        costs(me, "a local failed attempt",
              holder == 0 ? operation_counts{.rmw = 1}
                          : operation_counts{.load = 4, .store = 2, .rmw = 2},
              try_it);
      if (me.rank() == 3)
        costs(me, "a remote failed attempt",
              holder == 2 ? operation_counts{.cas = 1, .flush = 1}
                          : operation_counts{.put = 2, .get = 3, .cas = 2, .flush = 6, .load = 1},
              try_it);
      all.arrive_and_wait();
      if (me.rank() == holder) l.lock.unlock();
      all.arrive_and_wait();
    }
  });
}

/// Rank 2 holds the lock until rank 3, of its side, has drawn behind it.
TEST(farlock_counts, handoff_on_the_remote_side) {
  on_every_rank(two_nodes, [](counted_participant& me) {
    hooks(me).has_order = false;
    rma::barrier all(me);
    farlock l(me);
    const auto waits = me.cells().take<rma::plain_cell>(1).at(2);
    if (me.rank() == 2) l.lock.lock();
    all.arrive_and_wait();
    if (me.rank() == 2) {
      watch(me, waits, rma::equals(1));
      // The owner, and the grant, which is loopback.
      costs(me, "unlock with a successor",
            {.put = 2, .flush = 1, .loopback = 1, .load = 3, .store = 3}, [&] { l.lock.unlock(); });
    } else if (me.rank() == 3) {
      hooks(me).before_await = [&] { rma::put_now(uncounted(me), waits, 1); };
      me.port().reset_counts();
      l.lock.lock();
      const operation_counts spent = me.port().counts();
      // Its link and its acknowledgement; the flag, the next ticket and the flag. The ticket; the
      // other flag, the next ticket and the owner, and the owner again once it is granted.
      require(spent.swap == 1 && spent.put == 5 && spent.get >= 5, "the draw, behind a ticket");
      require(spent.network() == spent.swap + spent.put + spent.get, "and nothing else");
      hooks(me).before_await = nullptr;
      l.lock.unlock();
    }
    all.arrive_and_wait();
  });
}

/// The order of the draws decides, whichever side the participants are on: rank 2 holds, rank 1 has
/// drawn before rank 3, and is served before it.
TEST(farlock_counts, sides_take_turns_by_their_tickets) {
  on_every_rank(two_nodes, [](counted_participant& me) {
    rma::barrier all(me);
    farlock l(me);
    const auto entered = me.cells().take<rma::nic_cell>(1).at(0);
    const auto served = [&] { return rma::fetch_add_now(uncounted(me), entered, 1); };
    for (const rma::rank_t comes : {2, 1, 3}) {  // the doorway, one after the other
      if (me.rank() == comes) l.lock.take_ticket();
      all.arrive_and_wait();
    }
    const rma::word place = me.rank() == 2 ? 0 : me.rank() == 1 ? 1 : 2;
    if (me.rank() > 0) {
      l.lock.await_turn();
      require(served() == place, "first come, first served");
      l.lock.unlock();
    }
    all.arrive_and_wait();
  });
}

TEST(farlock_counts, local_participants_never_use_the_network) {
  on_every_rank(two_nodes, [](counted_participant& me) {
    farlock l(me, {.group = 2, .counter_bits = 3});
    const operation_counts spent = everybody_at_once(me, l.lock);
    const bool local = me.rank() < 2;
    require(local == (spent.network() == 0), "only the remote side uses the network");
    require(local == (spent.flush == 0), "nor has the local one anything to flush");
    require(local == (spent.rmw > 0), "only the local side uses CPU atomics");
  });
}

TEST(farlock_counts, refuses_more_ranks_than_tickets) {
  static_assert(lock::farlock<counted_port>::most_ranks({.counter_bits = 3}) == 8);
  on_every_rank(rma::topology::balanced({4, 2}),
                [](counted_participant& me) { farlock l(me, {.counter_bits = 3}); });
  on_every_rank(rma::topology::balanced({3, 3}), [](counted_participant& me) {
    try {
      farlock l(me, {.counter_bits = 3});
      require(false, "refused");
    } catch (const std::invalid_argument& e) {
      require(std::string(e.what()) ==
                  "farlock with counter_bits=3: 9 ranks (accepted: 1 to 8, as many as there are "
                  "tickets)",
              e.what());
    }
  });
}

}  // namespace
}  // namespace lockflight::test
