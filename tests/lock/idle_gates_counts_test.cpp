// What flight-rw costs where it need not look at all gates: at idle ones, and with the directory of
// those that are in use.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "counts.hpp"
#include "lockflight/lock/flight_rw.hpp"
#include "lockflight/lock/flight_rw/gate.hpp"
#include "lockflight/lock/flight_rw/writer_side.hpp"
#include "lockflight/lock/flight_rw/writers_turn.hpp"

namespace lockflight::test {
namespace {

using rma::topology;
using flight_rw = placed<lock::flight_rw>;

// Where only writers come the gates stay closed, and the third write costs what flight costs; from
// elsewhere, where posts are ordered, with a look at the directory in the same round trip.
TEST(flight_rw_counts, writers_alone_pay_for_flight) {
  on_every_rank(two_nodes, [](counted_participant& me) {
    rma::barrier all(me);
    flight_rw l(me);
    if (me.rank() == 2) {
      costs(me, "the first lock closes the gates",
            {.put = 1, .get = 2, .swap = 1, .flush = 3, .load = 4, .store = 1, .rmw = 1},
            [&] { l.lock.lock(); });
      l.lock.unlock();
      l.lock.lock();
      l.lock.unlock();
      costs(me, "the third lock, and a look at the directory",
            {.get = 2, .swap = 1, .flush = 1, .load = 2, .rmw = 1}, [&] { l.lock.lock(); });
      costs(me, "the third unlock", {.cas = 1, .flush = 1, .load = 2, .store = 1},
            [&] { l.lock.unlock(); });
    }
    all.arrive_and_wait();
    // The first reader lists its node and opens the gates that are in use; after that they are
    // open.
    for (const rma::rank_t reader : {3, 0}) {
      if (me.rank() == reader) {
        me.port().reset_counts();
        l.lock.lock_shared();
        const operation_counts c = me.port().counts();
        require(c.add == (reader == 3 ? 1 : 0), "1 bit for the node that is not the home's");
        require(c.put == (reader == 3 ? 2 : 0), "the directory and the home's gate");
        l.lock.unlock_shared();
      }
      all.arrive_and_wait();
    }
    costs(me, "lock_shared", {.load = 1, .rmw = 1}, [&] { l.lock.lock_shared(); });
    l.lock.unlock_shared();
    all.arrive_and_wait();
  });
}

const topology three_nodes = topology::balanced({3, 1});

/// What the gate of a rank's node says, uncounted.
lock::gate gate_at(counted_participant& me, const flight_rw& l, rma::rank_t of) {
  const auto at = l.cells.readers.gate_of(me.machine(), of);
  return lock::gate::from(rma::get_now(uncounted(me), at) ^ l.cells.readers.zero_of_gate(at.home));
}

void leave_gates_idle(flight_rw& l) {
  for (int turn = 0; turn < 2; ++turn) {
    l.lock.lock();
    l.lock.unlock();
  }
}

// A lock that only its home's node uses costs nothing of the network, however many others there
// are.
TEST(flight_rw_counts, who_uses_it_at_home_alone_does_not_use_the_network) {
  on_every_rank(three_nodes, [](counted_participant& me) {
    rma::barrier all(me);
    flight_rw l(me);
    if (me.rank() == 0) {
      leave_gates_idle(l);
      for (int round = 0; round < 2; ++round) {
        costs(me, "lock_shared",
              round == 0 ? operation_counts{.load = 9, .store = 3, .rmw = 5}
                         : operation_counts{.load = 1, .rmw = 1},
              [&] { l.lock.lock_shared(); });
        costs(me, "unlock_shared", {.rmw = 1}, [&] { l.lock.unlock_shared(); });
      }
      costs(me, "lock", {.load = 4, .store = 2, .rmw = 1}, [&] { l.lock.lock(); });
      costs(me, "unlock", {.load = 2, .store = 3}, [&] { l.lock.unlock(); });
      leave_gates_idle(l);
      costs(me, "lock at idle gates, and a look at the own one", {.load = 2, .rmw = 1},
            [&] { l.lock.lock(); });
      costs(me, "unlock at idle gates", {.load = 1, .store = 1}, [&] { l.lock.unlock(); });
    }
    all.arrive_and_wait();
  });
}

// On one node who comes to a free lock need not look at the gate to know that it is idle.
TEST(flight_rw_counts, writers_alone_on_one_node_pay_for_flight) {
  for (const lock::flight_rw_parameters& set :
       {lock::flight_rw_parameters{}, lock::in_table(lock::flight_rw_parameters{}, {2, 2})})
    on_every_rank(topology::flat(2), [&](counted_participant& me) {
      flight_rw l(me, set);
      if (me.rank() != 0) return;
      if (set.starts_open != 0) leave_gates_idle(l);
      const auto write = [&] {
        costs(me, "lock", {.rmw = 1}, [&] { l.lock.lock(); });
        costs(me, "unlock", {.load = 1, .store = 1}, [&] { l.lock.unlock(); });
      };
      write();
      l.lock.lock_shared();
      l.lock.unlock_shared();
      costs(me, "lock at an open gate", {.load = 4, .store = 1, .rmw = 1}, [&] { l.lock.lock(); });
      l.lock.unlock();
      l.lock.lock();
      l.lock.unlock();
      write();
    });
}

// Who is handed the lock in a turn of writers is told so, and does not look at the gate: it costs
// what flight costs (flight_counts.a_handover_inside_a_node_is_one_store).
TEST(flight_rw_counts, who_is_told_of_a_turn_does_not_look) {
  for (const topology& machine : {topology::flat(3), topology::balanced({2, 3})})
    on_every_rank(machine, [](counted_participant& me) {
      hooks(me).has_cores = true;
      flight_rw l(me);
      const auto tail = l.cells.writers.lines + 1;
      while_rank_0_holds(me, l.lock, [&](auto say_that_it_waits) {
        if (me.rank() == 2) watch(me, tail, rma::differs_from(rma::null_ref));
        if (me.rank() != 1 && me.rank() != 2) return;
        if (me.rank() == 2) {
          hooks(me).before_await = say_that_it_waits;
          costs(me, "lock behind somebody", {.load = 1, .store = 2, .rmw = 2},
                [&] { l.lock.lock(); });
        } else {
          l.lock.lock();
        }
        l.lock.unlock();
      });
    });
}

// And it must look before it opens them: for the phase after the one that they are closed for.
TEST(flight_rw_counts, who_is_told_of_a_turn_opens_the_next_phase) {
  for (const std::int64_t starts_open : {0, 1})
    on_every_rank(three_nodes, [starts_open](counted_participant& me) {
      lock::flight_rw_parameters set{};
      set.starts_open = starts_open;
      flight_rw l(me, set);
      if (me.rank() != 0) return;
      l.lock.lock();
      l.lock.unlock();
      l.lock.lock();
      const lock::gate closed = gate_at(me, l, 0);
      require(closed.what() == lock::gate::state::closed && closed.epoch() == 1, "rank 0 has it");
      lock::gate_keeper<counted_port> told(me, l.cells.readers, set);
      told.start(lock::writers_turn{.writers = 1}.bits(), false);
      require(told.look().what() == lock::gate::state::closed, "so it was told");
      told.open_here();
      require(gate_at(me, l, 0) == closed.next_phase().with_quiet(0),
              "open, for the phase after it");
    });
}

// A note in a word that is free says nothing of who comes past the queue: without handovers the
// word is left to anybody still.
TEST(flight_rw_counts, a_note_does_not_end_barging) {
  on_every_rank(topology::flat(2), [](counted_participant& me) {
    rma::barrier all(me);
    flight_rw l(me, {.writers = {.handovers = 0}});
    if (me.rank() == 0) leave_gates_idle(l);
    all.arrive_and_wait();
    if (me.rank() != 1) return;
    for (const char* what : {"lock finds a note", "lock finds somebody behind"}) {
      costs(me, what, {.rmw = 2}, [&] { l.lock.lock(); });
      const auto node = l.cells.writers.lines;
      rma::put_now(uncounted(me), node + 1, 1);  // the queue's tail: somebody stands there
      l.lock.unlock();
      require(lock::node_word::from(rma::get_now(uncounted(me), node)).barging,
              "it is for anybody");
      rma::put_now(uncounted(me), node + 1, 0);
    }
  });
}

// Of three nodes one reads: nobody asks the third.
TEST(flight_rw_counts, a_writer_closes_the_gates_in_the_directory) {
  on_every_rank(three_nodes, [](counted_participant& me) {
    rma::barrier all(me);
    flight_rw l(me);
    if (me.rank() == 1) leave_gates_idle(l);
    all.arrive_and_wait();
    if (me.rank() == 2) {
      costs(me, "lock_shared lists its node and opens idle gates",
            {.put = 2,
             .get = 5,
             .add = 1,
             .swap = 1,
             .cas = 1,
             .flush = 5,
             .load = 11,
             .store = 2,
             .rmw = 8},
            [&] { l.lock.lock_shared(); });
      l.lock.unlock_shared();
    }
    all.arrive_and_wait();
    if (me.rank() == 1) {
      costs(me, "lock closes two gates",
            {.put = 3, .get = 5, .swap = 1, .flush = 4, .load = 3, .rmw = 1},
            [&] { l.lock.lock(); });
      costs(me, "unlock opens them", {.put = 3, .cas = 1, .flush = 2, .load = 4, .store = 1},
            [&] { l.lock.unlock(); });
    }
    all.arrive_and_wait();
  });
}

// A lock of a table, of which nobody knows yet who uses it.
TEST(flight_rw_counts, a_lock_that_starts_with_nobody_listed) {
  on_every_rank(three_nodes, [](counted_participant& me) {
    rma::barrier all(me);
    lock::flight_rw_parameters set{};
    set.starts_open = 0;
    flight_rw l(me, set);
    if (me.rank() == 0) {
      costs(me, "lock at home", {.load = 4, .store = 2, .rmw = 1}, [&] { l.lock.lock(); });
      costs(me, "unlock at home", {.load = 2, .store = 3}, [&] { l.lock.unlock(); });
    }
    all.arrive_and_wait();
    for (int round = 0; round < 2; ++round) {
      if (me.rank() == 2)
        costs(me, "lock_shared",
              round == 0 ? operation_counts{.get = 1, .add = 1, .flush = 1, .load = 2, .rmw = 3}
                         : operation_counts{.load = 1, .rmw = 1},
              [&] { l.lock.lock_shared(); });
      if (me.rank() == 2) l.lock.unlock_shared();
    }
    all.arrive_and_wait();
  });
}

// Where readers have come on more nodes than the directory has pointers: those on which nobody is
// any more are left alone after one turn, unless they are so many that all gates are opened.
TEST(flight_rw_counts, more_nodes_than_pointers) {
  for (const std::int64_t broadcast : {2, 1})
    on_every_rank(three_nodes, [broadcast](counted_participant& me) {
      rma::barrier all(me);
      lock::flight_rw_parameters set{.pointers = 1, .broadcast = broadcast};
      set.starts_open = 0;
      flight_rw l(me, set);
      if (me.rank() > 0) {
        l.lock.lock_shared();
        l.lock.unlock_shared();
      }
      all.arrive_and_wait();
      if (me.rank() == 0) {
        const bool leaves = broadcast == 2;
        const auto network = [&](const char* what, operation_counts expected, auto call) {
          me.port().reset_counts();
          call();
          const operation_counts c = me.port().counts();
          const operation_counts found{.put = c.put, .get = c.get, .add = c.add, .flush = c.flush};
          require(to_text(found) == to_text(expected),
                  std::string(what) + " costs" + to_text(found));
        };
        network("the first lock", {.put = 2, .get = 2, .flush = 2}, [&] { l.lock.lock(); });
        network("the first unlock", {.put = 2, .add = leaves ? 1u : 0u, .flush = leaves ? 2u : 1u},
                [&] { l.lock.unlock(); });
        network("the second lock",
                leaves ? operation_counts{} : operation_counts{.put = 2, .get = 2, .flush = 2},
                [&] { l.lock.lock(); });
        l.lock.unlock();
      }
      all.arrive_and_wait();
    });
}

// Where posts come in no order a look at the directory is a round trip of its own, the third one.
// The tail says that gates are idle, so it is not needed, for as long as the home's word says no
// other.
TEST(flight_rw_counts, a_free_lock_tells_that_gates_are_idle) {
  const operation_counts as_flight{.get = 1, .swap = 1, .flush = 2, .load = 1, .rmw = 1};
  const operation_counts with_a_look{.get = 2, .swap = 1, .flush = 3, .load = 2, .rmw = 1};
  on_every_rank(three_nodes, [&](counted_participant& me) {
    rma::barrier all(me);
    hooks(me).has_order = false;
    flight_rw l(me);
    const auto writes = [&](rma::rank_t who, const char* what, const operation_counts& expected) {
      if (me.rank() == who) {
        costs(me, what, expected, [&] { l.lock.lock(); });
        l.lock.unlock();
      }
      all.arrive_and_wait();
    };
    const auto reads = [&](rma::rank_t who) {
      if (me.rank() == who) l.lock.lock_shared(), l.lock.unlock_shared();
      all.arrive_and_wait();
    };
    if (me.rank() == 1) leave_gates_idle(l);
    all.arrive_and_wait();
    writes(2, "lock, as the tail says idle", as_flight);
    writes(0, "lock at home, as the tail says idle", {.load = 1, .rmw = 1});
    writes(2, "lock after the home's node", as_flight);
    reads(0);  // opens them
    writes(0, "lock at home, where gates are open", {.load = 4, .store = 2, .rmw = 1});
    if (me.rank() == 1) leave_gates_idle(l);
    all.arrive_and_wait();
    if (me.rank() == 0) l.lock.lock(), l.lock.unlock();  // leaves them idle, and so does its word
    all.arrive_and_wait();
    writes(2, "lock, as both say idle", as_flight);
    reads(1);  // lists its node, and opens them
    if (me.rank() == 0) leave_gates_idle(l);
    all.arrive_and_wait();
    writes(2, "lock, as the tail does not say so", with_a_look);
  });
}

// What a node's gate says that was listed while the gates in use were idle, by who only tries: as
// they do, with their epoch. With its own it would let those in who have parked there since,
// behind a gate that a writer finds unlisted.
TEST(flight_rw_counts, a_gate_is_listed_with_the_epoch_of_the_directory) {
  on_every_rank(three_nodes, [](counted_participant& me) {
    rma::barrier all(me);
    lock::flight_rw_parameters set{};
    set.starts_open = 0;
    flight_rw l(me, set);
    if (me.rank() == 0) {
      leave_gates_idle(l);
      const lock::gate idle = gate_at(me, l, 0);
      require(idle.what() == lock::gate::state::idle, "the home's gate is idle");
      require(idle.epoch() != gate_at(me, l, 2).epoch(), "the unlisted one has missed epochs");
      l.lock.lock();
    }
    all.arrive_and_wait();
    if (me.rank() == 2) require(!l.lock.try_lock_shared(), "rank 0 has flight");
    all.arrive_and_wait();
    require(gate_at(me, l, 2) == gate_at(me, l, 0), "the gate says what the others do");
    all.arrive_and_wait();
    if (me.rank() == 0) l.lock.unlock();
    all.arrive_and_wait();
  });
}

}  // namespace
}  // namespace lockflight::test
