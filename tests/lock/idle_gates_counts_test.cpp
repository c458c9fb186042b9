// What flight-rw costs where it need not close all gates: at idle ones, and with the directory of
// those that are in use.
#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "counts.hpp"
#include "lockflight/lock/flight_rw.hpp"
#include "lockflight/lock/flight_rw/gate.hpp"

namespace lockflight::test {
namespace {

using rma::topology;
using flight_rw = placed<lock::flight_rw>;
using state = lock::gate::state;

const topology three_nodes = topology::balanced({3, 1});

/// What the gate of a rank's node says, uncounted.
lock::gate gate_at(counted_participant& me, const flight_rw& l, rma::rank_t of) {
  return l.cells.readers.gate_of(me.machine(), of).get_now(uncounted(me));
}

void leave_gates_idle(flight_rw& l) {
  for (int phase = 0; phase < 2; ++phase) {
    l.lock.lock();
    l.lock.unlock();
  }
}

/// What a call costs of the network, and flushes.
void network(counted_participant& me, const char* what, operation_counts expected, auto call) {
  me.port().reset_counts();
  call();
  const operation_counts c = me.port().counts();
  const operation_counts found{
      .put = c.put, .get = c.get, .add = c.add, .swap = c.swap, .cas = c.cas, .flush = c.flush};
  require(to_text(found) == to_text(expected), std::string(what) + " costs" + to_text(found));
}

// Where only writers come the gates stay closed, and the third write costs what flight costs and a
// look at the home's gate.
TEST(flight_rw_counts, writers_alone_pay_for_flight) {
  on_every_rank(two_nodes, [](counted_participant& me) {
    rma::barrier all(me);
    flight_rw l(me);
    if (me.rank() == 2) {
      network(me, "the first lock closes the home's gate",
              {.put = 1, .get = 4, .swap = 1, .flush = 4}, [&] { l.lock.lock(); });
      network(me, "the first unlock opens it", {.put = 1, .cas = 1, .flush = 2},
              [&] { l.lock.unlock(); });
      l.lock.lock();
      l.lock.unlock();
      costs(me, "the third lock", {.get = 2, .swap = 1, .flush = 2, .load = 2, .rmw = 1},
            [&] { l.lock.lock(); });
      costs(me, "the third unlock", {.cas = 1, .flush = 1, .load = 2, .store = 1},
            [&] { l.lock.unlock(); });
    }
    all.arrive_and_wait();
    // The first reader lists its node and opens the home's gate; after that they are open.
    for (const rma::rank_t reader : {3, 0}) {
      if (me.rank() == reader)
        network(
            me, "lock_shared",
            reader == 3
                ? operation_counts{.put = 1, .get = 4, .add = 1, .swap = 1, .cas = 1, .flush = 6}
                : operation_counts{},
            [&] { l.lock.lock_shared(); });
      if (me.rank() == reader) l.lock.unlock_shared();
      all.arrive_and_wait();
    }
    costs(me, "lock_shared", {.load = 1, .rmw = 1}, [&] { l.lock.lock_shared(); });
    l.lock.unlock_shared();
    all.arrive_and_wait();
  });
}

// A lock that only its home's node uses costs nothing of the network, however many others there
// are.
TEST(flight_rw_counts, at_home_alone_nothing_of_the_network) {
  on_every_rank(three_nodes, [](counted_participant& me) {
    rma::barrier all(me);
    flight_rw l(me);
    if (me.rank() == 0)
      network(me, "all of it", {}, [&] {
        for (int round = 0; round < 3; ++round) {
          l.lock.lock();
          l.lock.unlock();
          leave_gates_idle(l);
          l.lock.lock_shared();
          l.lock.unlock_shared();
          require(l.lock.try_lock() && (l.lock.unlock(), l.lock.try_lock_shared()), "free");
          l.lock.unlock_shared();
        }
      });
    all.arrive_and_wait();
  });
}

// At idle gates a writer on the lock's node reads its gate, and nothing else that flight does not.
TEST(flight_rw_counts, writers_alone_on_one_node) {
  on_every_rank(topology::flat(2), [](counted_participant& me) {
    flight_rw l(me);
    if (me.rank() != 0) return;
    leave_gates_idle(l);
    for (int again = 0; again < 2; ++again) {
      costs(me, "lock at idle gates", {.load = 1, .rmw = 1}, [&] { l.lock.lock(); });
      costs(me, "unlock", {.load = 1, .store = 1}, [&] { l.lock.unlock(); });
    }
    costs(me, "lock_shared opens them", {.load = 4, .store = 3, .rmw = 4},
          [&] { l.lock.lock_shared(); });
    l.lock.unlock_shared();
    costs(me, "lock at open gates", {.load = 3, .store = 1, .rmw = 1}, [&] { l.lock.lock(); });
    l.lock.unlock();
  });
}

// A scan sees no reader where one participant reads and writes in turn; its own reads count.
TEST(flight_rw_counts, a_participant_that_also_reads_leaves_the_gates_open) {
  on_every_rank(topology::flat(2), [](counted_participant& me) {
    flight_rw l(me);
    if (me.rank() != 0) return;
    for (int again = 0; again < 4; ++again) {
      l.lock.lock_shared();
      l.lock.unlock_shared();
      l.lock.lock();
      l.lock.unlock();
      require(gate_at(me, l, 0).is(state::open), "open");
    }
    leave_gates_idle(l);
    require(gate_at(me, l, 0).is(state::idle), "idle after two writes in a row");
  });
}

// A writer that is handed the lock in a phase of writers is passed that, and does not read a gate:
// it costs what flight costs (flight_counts.a_handover_inside_a_node_is_one_store).
TEST(flight_rw_counts, a_writer_that_is_passed_a_phase_reads_no_gate) {
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
          costs(me, "lock behind another writer", {.load = 1, .store = 2, .rmw = 2},
                [&] { l.lock.lock(); });
        } else {
          l.lock.lock();
        }
        l.lock.unlock();
      });
    });
}

// Of three nodes one reads: no writer asks the third.
TEST(flight_rw_counts, a_writer_closes_the_gates_in_the_directory) {
  on_every_rank(three_nodes, [](counted_participant& me) {
    rma::barrier all(me);
    flight_rw l(me);
    if (me.rank() == 2) {
      network(me, "the first lock_shared lists its node", {.get = 1, .add = 1, .flush = 1},
              [&] { l.lock.lock_shared(); });
      l.lock.unlock_shared();
      network(me, "the second one", {}, [&] { l.lock.lock_shared(); });
      l.lock.unlock_shared();
    }
    all.arrive_and_wait();
    if (me.rank() == 1) {
      network(me, "lock closes two gates", {.put = 2, .get = 5, .swap = 1, .flush = 5},
              [&] { l.lock.lock(); });
      network(me, "unlock opens them", {.put = 2, .cas = 1, .flush = 2}, [&] { l.lock.unlock(); });
    }
    all.arrive_and_wait();
    if (me.rank() == 0) {
      network(me, "lock at home closes one more", {.put = 1, .get = 1, .flush = 2},
              [&] { l.lock.lock(); });
      network(me, "unlock leaves them idle and unlists it",
              {.put = 1, .get = 1, .add = 1, .flush = 3}, [&] { l.lock.unlock(); });
      require(gate_at(me, l, 0).is(state::idle) && gate_at(me, l, 2).is(state::unlisted), "idle");
    }
    all.arrive_and_wait();
  });
}

// Where more than a third of the nodes read all gates are opened, and the next writer closes them
// without asking the directory.
TEST(flight_rw_counts, all_gates_are_opened_where_many_nodes_read) {
  on_every_rank(topology::balanced({4, 1}), [](counted_participant& me) {
    rma::barrier all(me);
    flight_rw l(me);
    if (me.rank() == 1 || me.rank() == 2) {
      l.lock.lock_shared();
      l.lock.unlock_shared();
    }
    all.arrive_and_wait();
    if (me.rank() == 0) {
      network(me, "the first lock closes two", {.put = 2, .get = 2, .flush = 2},
              [&] { l.lock.lock(); });
      network(me, "the first unlock opens all", {.put = 3, .flush = 1}, [&] { l.lock.unlock(); });
      require(gate_at(me, l, 3).has(lock::gate::all), "the gate of a node that has not read, too");
    }
    all.arrive_and_wait();
    if (me.rank() == 3) {
      network(me, "lock closes all", {.put = 3, .get = 4, .swap = 1, .flush = 3},
              [&] { l.lock.lock(); });
      l.lock.unlock();
      require(gate_at(me, l, 0).is(state::idle), "two phases have met no reader");
      require(gate_at(me, l, 1).is(state::unlisted), "and all nodes are off the directory");
    }
    all.arrive_and_wait();
    if (me.rank() == 1)
      require(rma::get_now(uncounted(me), l.cells.readers.listed) == 0, "which is empty");
    all.arrive_and_wait();
  });
}

// A gate is listed with the epoch of the home's: with its own it would let in readers that parked
// there since, behind a gate that a writer finds unlisted.
TEST(flight_rw_counts, a_gate_is_listed_with_the_epoch_of_the_homes) {
  on_every_rank(three_nodes, [](counted_participant& me) {
    rma::barrier all(me);
    flight_rw l(me);
    if (me.rank() == 0) l.lock.lock(), l.lock.unlock();
    all.arrive_and_wait();
    if (me.rank() == 2) {
      require(gate_at(me, l, 2).epoch() != gate_at(me, l, 0).epoch(), "it has missed an epoch");
      l.lock.lock_shared();
      require(gate_at(me, l, 2) == gate_at(me, l, 0), "the gate says what the home's does");
      l.lock.unlock_shared();
    }
    all.arrive_and_wait();
  });
}

// A reader that has no queue node left to take flight with leaves the gate to another one.
TEST(flight_rw_counts, a_reader_that_cannot_open_the_gates_leaves_them_idle) {
  on_every_rank(topology::flat(3), [](counted_participant& me) {
    rma::barrier all(me);
    flight_rw l(me);
    if (me.rank() == 0) {
      leave_gates_idle(l);
      l.lock.lock();  // at idle gates
    }
    std::vector<rma::queue_node> taken;
    if (me.rank() == 1)
      for (int i = 0; i < 32; ++i) taken.push_back(me.take_queue_node());
    all.arrive_and_wait();
    if (me.rank() == 1) {
      EXPECT_THROW(l.lock.lock_shared(), std::length_error);
      require(gate_at(me, l, 1).is(state::idle), "for another reader");
      for (const rma::queue_node& each : taken) me.give_back(each);
    }
    all.arrive_and_wait();
    if (me.rank() == 0) l.lock.unlock();
    if (me.rank() == 2) {
      l.lock.lock_shared();
      l.lock.unlock_shared();
    }
    all.arrive_and_wait();
  });
}

}  // namespace
}  // namespace lockflight::test
