// What flight and flight-rw cost, exactly: nothing of the network on the home's node and for any
// reader, one round trip each way from elsewhere, one put to hand over to another node.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "counts.hpp"
#include "lockflight/lock/flight.hpp"
#include "lockflight/lock/flight_rw.hpp"

namespace lockflight::test {
namespace {

using rma::topology;
using flight = placed<lock::flight>;
using flight_rw = placed<lock::flight_rw>;

/// That a lock takes of each rank's segment.
std::uint32_t words_of_flight(const topology& machine) {
  rma::layout in(4096);
  const std::uint32_t before = in.used();
  static_cast<void>(flight::lock_type::cells::place(in, machine, {}, 0));
  return in.used() - before;
}

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

const topology two_elements = topology::balanced({2, 2}, /*node_level=*/1);  // of one node

// A free lock costs the same with levels inside the node.
TEST(flight_counts, two_elements_of_a_node_uncontended) { is_one_atomic_and_a_store(two_elements); }

// Levels that order nothing take no cells and cost nothing: elements of one rank, and one element
// that is the whole node.
TEST(flight_counts, levels_that_order_nothing_cost_nothing) {
  for (const std::vector<int>& fanouts : {std::vector{2, 1}, std::vector{1, 2}}) {
    const topology machine = topology::balanced(fanouts, 1);
    EXPECT_EQ(words_of_flight(machine), words_of_flight(topology::flat(2)));
    on_every_rank(machine, [](counted_participant& me) {
      flight l(me);
      if (me.rank() != 0) return;
      costs(me, "lock", {.rmw = 1}, [&] { l.lock.lock(); });
      costs(me, "unlock", {.load = 1, .store = 1}, [&] { l.lock.unlock(); });
    });
  }
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
            {.put = 1, .get = 2, .cas = 3, .flush = 6, .load = 3, .store = 2},
            [&] { l.lock.unlock(); });
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

// Rank 0 has the lock until another one says that it waits.
template <class Lock, class Others>
void while_rank_0_holds(counted_participant& me, Lock& lock, Others others) {
  rma::barrier all(me);
  const auto waits = me.cells().take<rma::plain_cell>(1);
  if (me.rank() == 0) lock.lock();
  all.arrive_and_wait();
  if (me.rank() == 0) {
    watch(me, waits, rma::equals(1));
    lock.unlock();
  } else {
    others([&me, waits] { rma::put_now(uncounted(me), waits, 1); });
  }
  all.arrive_and_wait();
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

// In a table all that a node has for a lock lies together.
TEST(flight_counts, one_line_in_a_table) {
  const topology machine = topology::balanced({3, 2});
  rma::layout in(4096);
  const std::uint32_t before = in.used();
  const auto cells = flight_rw::lock_type::cells::place(
      in, machine, lock::in_table(lock::flight_rw_parameters{}), 2);
  EXPECT_EQ(in.used() - before, rma::line_words);
  const std::uint32_t line = cells.writers.lines.index;
  for (const std::uint32_t index :
       {cells.writers.tail.index, cells.writers.victim.index, cells.readers.gates.index,
        cells.readers.gates.index + 1, cells.readers.says.index, cells.readers.listed.index}) {
    EXPECT_GE(index, line + 2);
    EXPECT_LT(index, line + rma::line_words);
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

TEST(flight_counts, nobody_uses_the_network_inside_a_node_with_levels) {
  for (const int node_level : {1, 2})
    on_every_rank(topology::balanced({2, 2, 2}, node_level), [](counted_participant& me) {
      flight l(me, {.barge = 1, .local_budget = 2, .remote_budget = 1});
      const operation_counts spent = everybody_at_once(me, l.lock);
      require(spent.loopback == 0, "no loopback");
      require(me.machine().same_node(0, me.rank()) == (spent.network() == 0),
              "the home's node needs no network");
    });
}

// The bound holds from when somebody stands in the queue. Rank 0 takes the lock again and again,
// and counts from the first time that it sees somebody there.
TEST(flight_counts, who_waits_is_passed_by_at_most_barge_times) {
  constexpr int barge = 3;
  on_every_rank(topology::flat(2), [](counted_participant& me) {
    rma::barrier all(me);
    flight l(me, {.barge = barge});
    const rma::cpu_cell tail{l.cells.lines.home, l.cells.lines.index + 1};
    const auto entered = me.cells().take<rma::plain_cell>(1);
    for (rma::word round = 1; round <= 200; ++round) {
      all.arrive_and_wait();
      if (me.rank() == 1) {
        l.lock.lock();
        rma::put_now(uncounted(me), entered, round);
        l.lock.unlock();
        continue;
      }
      for (int passed = 0; rma::get_now(uncounted(me), entered) != round;) {
        const bool waits = rma::get_now(uncounted(me), tail) != rma::null_ref;
        l.lock.lock();
        if (rma::get_now(uncounted(me), entered) != round && waits) ++passed;
        l.lock.unlock();
        require(passed <= barge, "passed by " + std::to_string(passed) + " times");
      }
    }
  });
}

TEST(flight_rw_counts, readers_never_use_the_network) {
  on_every_rank(two_nodes, [](counted_participant& me) {
    rma::barrier all(me);
    flight_rw l(me);
    all.arrive_and_wait();
    costs(me, "lock_shared", {.load = 1, .rmw = 1}, [&] { l.lock.lock_shared(); });
    costs(me, "unlock_shared", {.rmw = 1}, [&] { l.lock.unlock_shared(); });
    costs(me, "try_lock_shared", {.load = 2, .rmw = 1},
          [&] { require(l.lock.try_lock_shared(), "no writer is there"); });
    costs(me, "unlock_shared", {.rmw = 1}, [&] { l.lock.unlock_shared(); });
    all.arrive_and_wait();
  });
}

void a_reader_waits(const lock::flight_rw_parameters& set, const operation_counts& its) {
  on_every_rank(two_nodes, [&](counted_participant& me) {
    flight_rw l(me, set);
    while_rank_0_holds(me, l.lock, [&](auto say_that_it_waits) {
      if (me.rank() != 3) return;
      hooks(me).before_await = say_that_it_waits;
      costs(me, "lock_shared at a closed gate", its, [&] { l.lock.lock_shared(); });
      l.lock.unlock_shared();
    });
  });
}

// Readers park and wait on their node too, as long as the writers promise to open.
TEST(flight_rw_counts, a_reader_that_waits_does_not_use_the_network) {
  a_reader_waits({.overtaking = 0}, {.load = 2, .rmw = 2});
}
// One that lets writers pass is not counted meanwhile, and comes anew.
TEST(flight_rw_counts, a_reader_that_lets_writers_pass_does_not_use_the_network) {
  a_reader_waits({.overtaking = 1}, {.load = 3, .rmw = 3});
}

// Where only writers come the gates stay closed: the third write costs what flight costs, and a
// look at the own gate.
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
            {.get = 2, .swap = 1, .flush = 1, .load = 3, .rmw = 1}, [&] { l.lock.lock(); });
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
       {lock::flight_rw_parameters{}, lock::in_table(lock::flight_rw_parameters{})})
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
             .load = 12,
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

// From elsewhere, with one other node and one cell of readers there; the same from the home's node,
// but that flight costs nothing.
TEST(flight_rw_counts, up_and_down) {
  on_every_rank(two_nodes, [](counted_participant& me) {
    rma::barrier all(me);
    flight_rw l(me);
    const bool home = me.rank() == 0;
    const auto network = [&](const char* what, operation_counts expected, auto call) {
      me.port().reset_counts();
      call();
      const operation_counts c = me.port().counts();
      const operation_counts found{.put = c.put, .get = c.get, .swap = c.swap, .cas = c.cas};
      require(to_text(found) == to_text(expected), std::string(what) + " costs" + to_text(found));
    };
    const operation_counts none{};
    const operation_counts acquires = home ? none : operation_counts{.get = 1, .swap = 1};
    const operation_counts releases = home ? none : operation_counts{.cas = 1};
    for (const rma::rank_t turn : {0, 2}) {
      if (me.rank() == turn) {
        network("lock_upgrade", acquires, [&] { l.lock.lock_upgrade(); });
        network("up", {.put = 1, .get = 1}, [&] { l.lock.unlock_upgrade_and_lock(); });
        network("down", {.put = 1}, [&] { l.lock.unlock_and_lock_upgrade(); });
        network("unlock_upgrade", releases, [&] { l.lock.unlock_upgrade(); });
        l.lock.lock_shared();
        network("up from shared", {.put = 1, .get = home ? 1u : 2u, .cas = home ? 0u : 1u},
                [&] { require(l.lock.try_unlock_shared_and_lock(), "nobody else is there"); });
        network("down to shared", {.put = 1, .cas = releases.cas},
                [&] { l.lock.unlock_and_lock_shared(); });
        l.lock.unlock_shared();
        require(l.lock.try_lock_upgrade(), "nobody else is there");
        network("from upgrade to shared", releases,
                [&] { l.lock.unlock_upgrade_and_lock_shared(); });
        network("unlock_shared", none, [&] { l.lock.unlock_shared(); });
      }
      all.arrive_and_wait();
    }
  });
}

// On one node each rank has a cell that it alone writes, and no atomics.
TEST(flight_rw_counts, on_one_node_readers_share_nothing) {
  on_every_rank(topology::flat(2), [](counted_participant& me) {
    rma::barrier all(me);
    flight_rw l(me);
    costs(me, "lock_shared", {.load = 1, .rmw = 1}, [&] { l.lock.lock_shared(); });
    costs(me, "unlock_shared", {.store = 1}, [&] { l.lock.unlock_shared(); });
    all.arrive_and_wait();
    if (me.rank() == 1) {
      costs(me, "lock looks at both cells", {.load = 4, .store = 1, .rmw = 1},
            [&] { l.lock.lock(); });
      l.lock.unlock();
    }
    all.arrive_and_wait();
  });
}

// A node has one gate, however many cells.
TEST(flight_rw_counts, a_cell_more_is_a_get_more) {
  on_every_rank(two_nodes, [](counted_participant& me) {
    rma::barrier all(me);
    flight_rw l(me, {.ranks_per_cell = 1});
    costs(me, "lock_shared", {.load = 1, .rmw = 1}, [&] { l.lock.lock_shared(); });
    l.lock.unlock_shared();
    all.arrive_and_wait();
    if (me.rank() == 2) {
      costs(me, "lock closes the gates",
            {.put = 1, .get = 3, .swap = 1, .flush = 3, .load = 5, .store = 1, .rmw = 1},
            [&] { l.lock.lock(); });
      costs(me, "unlock opens them", {.put = 1, .cas = 1, .flush = 2, .load = 4, .store = 2},
            [&] { l.lock.unlock(); });
    }
    all.arrive_and_wait();
  });
}

// Nobody waits to read when a turn ends: readers are counted together, for who writes has then less
// to look at. Once, after that, it looks at all cells.
TEST(flight_rw_counts, adaptive_cells_are_one_a_node_while_few_read) {
  on_every_rank(two_nodes, [](counted_participant& me) {
    rma::barrier all(me);
    flight_rw l(me, {.ranks_per_cell = 1, .adaptive = 1, .against = 1});
    const auto write = [&](const char* which, std::uint64_t gets) {
      me.port().reset_counts();
      l.lock.lock();
      require(me.port().counts().get == gets,
              std::string(which) + ": " + std::to_string(me.port().counts().get) + " gets");
      l.lock.unlock();
    };
    if (me.rank() == 2) write("the first lock looks at two cells elsewhere", 3);
    all.arrive_and_wait();
    if (me.rank() == 3) {
      costs(me, "lock_shared finds the cells changed", {.load = 2, .store = 1, .rmw = 2},
            [&] { l.lock.lock_shared(); });
      costs(me, "unlock_shared", {.rmw = 1}, [&] { l.lock.unlock_shared(); });
      costs(me, "lock_shared", {.load = 1, .rmw = 1}, [&] { l.lock.lock_shared(); });
      l.lock.unlock_shared();
    }
    all.arrive_and_wait();
    if (me.rank() == 2) {
      write("the second lock looks at all three", 4);
      l.lock.lock_shared();  // else the gates stay closed
      l.lock.unlock_shared();
      write("the third lock looks at one", 2);
    }
    all.arrive_and_wait();
  });
}

// Four nodes in branches of two: a reader that waits on the third node sees to the fourth.
TEST(flight_rw_counts, a_deputy_puts_the_gates_of_its_branch) {
  on_every_rank(topology::balanced({4, 1}), [](counted_participant& me) {
    constexpr std::int64_t until_it_comes = 1'000'000'000;
    rma::barrier all(me);
    flight_rw l(me, {.overtaking = 0, .branch = 2, .patience = until_it_comes});
    if (me.rank() == 0) {
      me.port().reset_counts();
      l.lock.lock();
      require(me.port().counts().put == 2, "closed: the first gates of both branches");
      me.port().reset_counts();
      l.lock.unlock();
      require(me.port().counts().put == 2, "opened: the same");
    } else if (me.rank() == 2) {
      me.port().reset_counts();
      while (me.port().counts().put == 0) {
        l.lock.lock_shared();
        l.lock.unlock_shared();
      }
      require(me.port().counts().put == 2, "the fourth gate, closed and opened");
    }
    all.arrive_and_wait();
    costs(me, "lock_shared", {.load = 1, .rmw = 1}, [&] { l.lock.lock_shared(); });
    l.lock.unlock_shared();
    all.arrive_and_wait();
  });
}

TEST(flight_rw_counts, a_writer_does_without_a_deputy) {
  on_every_rank(topology::balanced({4, 1}), [](counted_participant& me) {
    rma::barrier all(me);
    flight_rw l(me, {.branch = 2, .patience = 0});
    if (me.rank() == 0) {
      costs(me, "lock: 2 puts and 2 gets, a dismissal and a look, 1 put and 2 gets",
            {.put = 4, .get = 5, .flush = 6, .load = 5, .store = 1, .rmw = 1},
            [&] { l.lock.lock(); });
      l.lock.unlock();
    }
    all.arrive_and_wait();
  });
}

}  // namespace
}  // namespace lockflight::test
