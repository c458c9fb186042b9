// What flight costs, exactly: nothing of the network on the home's node, one round trip each way
// from elsewhere, one put to hand over to another node.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "counts.hpp"
#include "lockflight/lock/flight.hpp"

namespace lockflight::test {
namespace {

using rma::topology;
using flight = placed<lock::flight>;

void is_one_atomic_and_a_store(const topology& machine) {
  on_every_rank(machine, [](counted_participant& me) {
    rma::barrier all(me);
    flight l(me);
    for (rma::rank_t turn = 0; turn < me.machine().ranks(); ++turn, all.arrive_and_wait()) {
      if (turn != me.rank()) continue;
      costs(me, "lock", {.rmw = 1}, [&] { l.lock.lock(); });
      costs(me, "unlock", {.load = 1, .store = 1}, [&] { l.lock.unlock(); });
      costs(me, "try_lock", {.rmw = 1}, [&] { require(l.lock.try_lock(), "it is free"); });
      costs(me, "unlock", {.load = 1, .store = 1}, [&] { l.lock.unlock(); });
    }
  });
}

TEST(flight_counts, one_node_is_one_atomic_and_a_store) {
  is_one_atomic_and_a_store(topology::flat(2));
}

// A flush is a round trip: the swap and the look at the home's node share one.
TEST(flight_counts, uncontended) {
  on_every_rank(two_nodes, [](counted_participant& me) {
    rma::barrier all(me);
    flight l(me);
    for (rma::rank_t turn = 0; turn < 4; ++turn, all.arrive_and_wait()) {
      if (turn != me.rank()) continue;
      const bool home = turn < 2;
      const operation_counts acquire =
          home ? operation_counts{.load = 1, .rmw = 1}
               : operation_counts{.get = 1, .swap = 1, .flush = 1, .load = 1, .rmw = 1};
      const operation_counts release =
          home ? operation_counts{.load = 1, .store = 1}
               : operation_counts{.cas = 1, .flush = 1, .load = 2, .store = 1};
      costs(me, "lock", acquire, [&] { l.lock.lock(); });
      costs(me, "unlock", release, [&] { l.lock.unlock(); });
    }
  });
}

// One put each way, whatever the two nodes were before; waiting is local.
TEST(flight_counts, handoff_between_nodes_is_one_put) {
  on_every_rank(topology::balanced({3, 1}), [](counted_participant& me) {
    rma::barrier all(me);
    flight l(me);
    const auto waits = me.cells().take<rma::plain_cell>(1);
    if (me.rank() == 1) l.lock.lock();
    all.arrive_and_wait();
    if (me.rank() == 1) {
      watch(me, waits, rma::equals(1));
      costs(me, "unlock with a node behind", {.put = 1, .flush = 1, .load = 2, .store = 2},
            [&] { l.lock.unlock(); });
    } else if (me.rank() == 2) {
      hooks(me).before_await = [&] { rma::put_now(uncounted(me), waits, 1); };
      costs(me, "lock behind a node",
            {.put = 1, .get = 1, .swap = 1, .flush = 2, .load = 2, .rmw = 1},
            [&] { l.lock.lock(); });
      l.lock.unlock();
    }
  });
}

// Rank 2 gives up behind rank 1, both of other nodes than the home's; its place is in the queue
// still when it comes again, and not any more when rank 1 has taken it out.
TEST(flight_counts, giving_up_and_coming_back_between_nodes) {
  on_every_rank(topology::balanced({3, 1}), [](counted_participant& me) {
    rma::barrier all(me);
    flight l(me);
    const auto in_vain = [&] { require(!l.lock.try_lock_within(100'000), "rank 1 has it"); };
    if (me.rank() == 1) l.lock.lock();
    all.arrive_and_wait();
    if (me.rank() == 2) {
      costs(me, "to give up",
            {.put = 1,
             .get = 1,
             .swap = 1,
             .cas = 1,
             .flush = 3,
             .loopback = 1,
             .load = 3,
             .store = 1,
             .rmw = 1},
            in_vain);
      costs(me, "to come back and give up again",
            {.cas = 2, .flush = 2, .loopback = 2, .load = 3, .store = 1, .rmw = 1}, in_vain);
    }
    all.arrive_and_wait();
    if (me.rank() == 1)
      costs(me, "unlock with an entry behind that was left",
            {.get = 2, .cas = 3, .flush = 5, .load = 3, .store = 2}, [&] { l.lock.unlock(); });
    all.arrive_and_wait();
    if (me.rank() == 2)
      costs(me, "lock", {.get = 1, .swap = 1, .flush = 1, .load = 1, .rmw = 1},
            [&] { l.lock.lock(); });
  });
}

TEST(flight_counts, giving_up_inside_a_node_is_local) {
  on_every_rank(two_nodes, [](counted_participant& me) {
    rma::barrier all(me);
    flight l(me);
    if (me.rank() == 2) l.lock.lock();
    all.arrive_and_wait();
    if (me.rank() == 3) {
      me.port().reset_counts();
      for (int i = 0; i < 50; ++i) require(!l.lock.try_lock_within(10'000), "rank 2 has it");
      require(me.port().counts().network() == 0, "no network operation");
    }
    all.arrive_and_wait();
    if (me.rank() == 2) l.lock.unlock();
    all.arrive_and_wait();
    if (me.rank() == 3) require(l.lock.try_lock(), "free");
  });
}

// Rank 1 comes to the queue's head and stays there; so it hands the word over, by one store.
TEST(flight_counts, a_handover_inside_a_node_is_one_store) {
  on_every_rank(topology::flat(3), [](counted_participant& me) {
    hooks(me).has_cores = true;
    flight l(me);
    const rma::cpu_cell tail{l.cells.lines.home, l.cells.lines.index + 1};
    while_rank_0_holds(me, l.lock, [&](auto say_that_it_waits) {
      if (me.rank() == 1) {
        l.lock.lock();
        costs(me, "unlock with somebody behind", {.load = 2, .store = 2}, [&] { l.lock.unlock(); });
        return;
      }
      watch(me, tail, rma::differs_from(rma::null_ref));
      hooks(me).before_await = say_that_it_waits;
      costs(me, "lock behind somebody", {.load = 1, .store = 2, .rmw = 2}, [&] { l.lock.lock(); });
      costs(me, "unlock with nobody behind", {.load = 3, .store = 1, .rmw = 1},
            [&] { l.lock.unlock(); });
    });
  });
}

// Ranks 1 to 6 stand in the queue in this order. A rank to which the word is handed over needs no
// atomic for it; one that becomes the head in a trial does, and so does rank 1.
TEST(flight_counts, after_so_many_handovers_there_is_a_trial) {
  for (const std::int64_t handovers : {1, 2, 3}) {
    on_every_rank(topology::flat(7), [handovers](counted_participant& me) {
      rma::barrier all(me);
      flight l(me, {.handovers = handovers});
      const auto last = me.cells().take<rma::plain_cell>(1);
      if (me.rank() == 0) l.lock.lock();
      all.arrive_and_wait();
      const auto comes = static_cast<rma::word>(me.rank());
      if (me.rank() == 0) {
        watch(me, last, rma::equals(6));
        l.lock.unlock();
        return;
      }
      watch(me, last, rma::equals(comes - 1));
      hooks(me).before_await = [&] { rma::put_now(uncounted(me), last, comes); };
      me.port().reset_counts();
      l.lock.lock();
      const bool is_handed_over = (me.rank() - 1) % (handovers + 1) != 0;
      const std::uint64_t atomics = me.port().counts().rmw;
      require(atomics == (is_handed_over ? 2 : 3), std::to_string(atomics) + " atomics");
      l.lock.unlock();
    });
  }
}

TEST(flight_counts, nobody_uses_the_network_to_reach_its_own_node) {
  on_every_rank(two_nodes, [](counted_participant& me) {
    flight l(me, {.barge = 1, .local_budget = 1, .remote_budget = 1});
    const operation_counts spent = everybody_at_once(me, l.lock);
    require(spent.loopback == 0, "no loopback");
    require((me.rank() < 2) == (spent.network() == 0), "the home's node needs no network");
    require(spent.rmw > 0, "inside a node CPU atomics decide");
  });
}

// What is set holds everywhere; the defaults depend on whether ranks share cores.
TEST(flight_counts, time_bounds_overtaking_where_cores_are_shared) {
  struct cores {
    bool are_shared;
    [[nodiscard]] bool shares_cores() const { return are_shared; }
  };
  const lock::flight_parameters usual;
  EXPECT_EQ(usual.barge_on(cores{true}), usual.most_barges());
  EXPECT_EQ(usual.patience_on(cores{true}), 300'000);
  EXPECT_EQ(usual.barge_on(cores{false}), 64);
  EXPECT_EQ(usual.patience_on(cores{false}), 0);
  const lock::flight_parameters set{.barge = 3, .patience = 5};
  for (const bool are_shared : {false, true}) {
    EXPECT_EQ(set.barge_on(cores{are_shared}), 3);
    EXPECT_EQ(set.patience_on(cores{are_shared}), 5);
  }
  EXPECT_EQ(set.most_barges(), 3);
}

// The bound holds from when somebody stands in the queue. Rank 0 takes the lock again and again,
// and counts from the first time that it sees somebody there.
TEST(flight_counts, who_waits_is_passed_by_at_most_barge_times) {
  constexpr int barge = 3;
  on_every_rank(topology::flat(2), [](counted_participant& me) {
    rma::barrier all(me);
    flight l(me, {.barge = barge, .handovers = 0});  // where others may pass
    const rma::cpu_cell tail{l.cells.lines.home, l.cells.lines.index + 1};
    const auto entered = me.cells().take<rma::plain_cell>(1);
    int most_passed = 0;
    for (rma::word round = 1; round <= 200; ++round) {
      if (me.rank() == 0) l.lock.lock();
      all.arrive_and_wait();
      if (me.rank() == 1) {
        l.lock.lock();
        rma::put_now(uncounted(me), entered, round);
        l.lock.unlock();
        continue;
      }
      watch(me, tail, rma::differs_from(rma::null_ref));  // rank 1 waits
      l.lock.unlock();
      for (int passed = 0; rma::get_now(uncounted(me), entered) != round;) {
        l.lock.lock();
        if (rma::get_now(uncounted(me), entered) != round) ++passed;
        l.lock.unlock();
        require(passed <= barge, "passed by " + std::to_string(passed) + " times");
        most_passed = std::max(most_passed, passed);
      }
    }
    require(me.rank() == 1 || most_passed > 0, "nobody was passed by");
  });
}

}  // namespace
}  // namespace lockflight::test
