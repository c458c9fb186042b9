// What flight-rw costs, exactly: readers nothing of the network, writers what flight costs and,
// where gates are open, a put and a get for each node.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "counts.hpp"
#include "lockflight/lock/flight_rw.hpp"

namespace lockflight::test {
namespace {

using rma::topology;
using flight_rw = placed<lock::flight_rw>;

/// The first reader of a node lists it, by the network.
void list_node_of_rank_2(counted_participant& me, flight_rw& l) {
  rma::barrier all(me);
  if (me.rank() == 2) {
    l.lock.lock_shared();
    l.lock.unlock_shared();
  }
  all.arrive_and_wait();
}

TEST(flight_rw_counts, readers_never_use_the_network) {
  on_every_rank(two_nodes, [](counted_participant& me) {
    rma::barrier all(me);
    flight_rw l(me);
    list_node_of_rank_2(me, l);
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
    list_node_of_rank_2(me, l);
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
// A reader that stays away is not counted meanwhile, and reads the gate after each pause.
TEST(flight_rw_counts, a_reader_that_lets_writers_pass_does_not_use_the_network) {
  a_reader_waits({.overtaking = 1}, {.load = 4, .rmw = 3});
  a_reader_waits({.overtaking = 3}, {.load = 5, .rmw = 3});
}

// What is set holds everywhere; the defaults depend on the node and its cores.
TEST(flight_rw_counts, readers_stay_away_and_writers_open_where_that_is_cheap) {
  struct place {
    bool are_shared;
    topology nodes;
    [[nodiscard]] bool shares_cores() const { return are_shared; }
    [[nodiscard]] const topology& machine() const { return nodes; }
  };
  const lock::flight_rw_parameters usual;
  const lock::flight_rw_parameters set{.t_w = 3, .overtaking = 5};
  for (const bool are_shared : {false, true})
    for (const topology& nodes : {topology::flat(2), two_nodes}) {
      const place here{are_shared, nodes};
      const bool is_one = nodes.nodes() == 1;
      EXPECT_EQ(usual.t_w_on(here), are_shared && is_one ? 1 : 256);
      EXPECT_EQ(usual.overtaking_on(here), are_shared || is_one ? 16 : 0);
      EXPECT_EQ(set.t_w_on(here), 3);
      EXPECT_EQ(set.overtaking_on(here), 5);
    }
}

// From elsewhere, with one other node and one cell of readers there; the same from the home's node,
// but that flight costs nothing.
TEST(flight_rw_counts, up_and_down) {
  on_every_rank(two_nodes, [](counted_participant& me) {
    rma::barrier all(me);
    flight_rw l(me);
    list_node_of_rank_2(me, l);
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
        network("up", {.put = 1, .get = home ? 1u : 2u}, [&] { l.lock.unlock_upgrade_and_lock(); });
        network("down", {.put = 1}, [&] { l.lock.unlock_and_lock_upgrade(); });
        network("unlock_upgrade", releases, [&] { l.lock.unlock_upgrade(); });
        l.lock.lock_shared();
        network("up from shared", {.put = 1, .get = home ? 1u : 3u, .cas = home ? 0u : 1u},
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
      costs(me, "lock reads both counters", {.load = 3, .store = 1, .rmw = 1},
            [&] { l.lock.lock(); });
      l.lock.unlock();
    }
    all.arrive_and_wait();
  });
}

// In a table all that a node has for a lock lies together.
TEST(flight_rw_counts, one_line_in_a_table) {
  const topology machine = topology::balanced({3, 2});
  rma::layout in(4096);
  const std::uint32_t before = in.used();
  const auto cells = flight_rw::lock_type::cells::place(
      in, machine, lock::in_table(lock::flight_rw_parameters{}, {6, 6}), 2);
  EXPECT_EQ(in.used() - before, rma::line_words);
  const std::uint32_t line = cells.writers.lines.index;
  for (const std::uint32_t index :
       {cells.writers.tail.index, cells.writers.victim.index, cells.readers.gates.index,
        cells.readers.gates.index + 1, cells.readers.listed.index}) {
    EXPECT_GE(index, line + 2);
    EXPECT_LT(index, line + rma::line_words - 1) << "the last word is the impatient head's";
  }
}

// All words at the home, as in memory that outlives its ranks, and an impatient head.
TEST(flight_rw_counts, rows_at_home_exclude_as_well) {
  on_every_rank(topology::flat(4), [](counted_participant& me) {
    rma::barrier all(me);
    const auto data = me.cells().take<rma::plain_cell>(2).at(0);
    flight_rw l(
        me,
        {.ranks_per_cell = 2, .writers = {.one_line = 1, .patience = 1'000}, .rows_at_home = true});
    require(l.cells.readers.counter_of(me.machine(), 3).home == 0, "a counter is elsewhere");
    constexpr int rounds = 300;
    for (int i = 0; i < rounds; ++i) {
      l.lock.lock();
      const rma::word before = me.port().load(data);
      me.port().store(data, before + 1);
      me.port().store(data + 1, before + 1);
      l.lock.unlock();
      l.lock.lock_shared();
      require(me.port().load(data) == me.port().load(data + 1), "a reader is beside a writer");
      l.lock.unlock_shared();
    }
    all.arrive_and_wait();
    require(me.port().load(data) == 4 * rounds, "an increment is lost");
  });
}

// The word that `patience` needs is beside the others of a node.
TEST(flight_rw_counts, patience_takes_no_line) {
  const auto lines_of = [](const lock::flight_rw_parameters& set) {
    rma::layout in(4096);
    static_cast<void>(flight_rw::lock_type::cells::place(in, topology::flat(2), set, 1));
    return (in.used() + rma::line_words - 1) / rma::line_words;
  };
  EXPECT_EQ(lines_of({.writers = {.patience = 1}}), lines_of({}));
  EXPECT_EQ(lines_of({.writers = {.one_line = 1, .patience = 1}}),
            lines_of({.writers = {.one_line = 1}}));
}

// Cells for fewer take memory, so tables have them where many ranks are to each lock.
TEST(flight_rw_counts, four_share_a_cell_in_a_table_of_few_locks) {
  const topology machine = topology::balanced({2, 8});
  const auto lines_of_each = [&](lock::table_size of) {
    rma::layout in(4096);
    const std::uint32_t before = in.used();
    static_cast<void>(flight_rw::lock_type::cells::place(
        in, machine, lock::in_table(lock::flight_rw_parameters{}, of), 2));
    return (in.used() - before) / rma::line_words;
  };
  EXPECT_EQ(lines_of_each({.locks = 9, .ranks = 16}), 1u);
  EXPECT_EQ(lines_of_each({.locks = 8, .ranks = 16}), 1u + 2u);
}

// A rank's own cell is left by a store, so nobody else may be counted in it.
TEST(flight_rw_counts, a_larger_node_has_cells_for_all) {
  const topology four_and_one({{0, 0, 0, 0, 0}, {0, 0, 0, 0, 1}}, 2);
  on_every_rank(four_and_one, [](counted_participant& me) {
    rma::barrier all(me);
    flight_rw l(me, {.ranks_per_cell = 1});
    for (int pair = 0; pair < 16; ++pair) {
      const int stays = pair / 4;
      const int leaves = pair % 4;
      if (stays == leaves) continue;
      if (me.rank() == stays || me.rank() == leaves) l.lock.lock_shared();
      all.arrive_and_wait();
      if (me.rank() == leaves) l.lock.unlock_shared();
      all.arrive_and_wait();
      if (me.rank() == 4) {
        const bool got = l.lock.try_lock();
        EXPECT_FALSE(got) << stays << " reads, " << leaves << " has left";
        if (got) l.lock.unlock();
      }
      all.arrive_and_wait();
      if (me.rank() == stays) l.lock.unlock_shared();
      all.arrive_and_wait();
    }
  });
}

// A node has one gate, and one operation gets all of its cells.
TEST(flight_rw_counts, a_cell_more_elsewhere_costs_no_operation) {
  on_every_rank(two_nodes, [](counted_participant& me) {
    rma::barrier all(me);
    flight_rw l(me, {.ranks_per_cell = 1});
    list_node_of_rank_2(me, l);
    costs(me, "lock_shared", {.load = 1, .rmw = 1}, [&] { l.lock.lock_shared(); });
    l.lock.unlock_shared();
    all.arrive_and_wait();
    if (me.rank() == 2) {
      costs(me, "lock closes the gates",
            {.put = 1, .get = 3, .swap = 1, .flush = 3, .load = 4, .store = 1, .rmw = 1},
            [&] { l.lock.lock(); });
      costs(me, "unlock opens them", {.put = 1, .cas = 1, .flush = 2, .load = 4, .store = 2},
            [&] { l.lock.unlock(); });
    }
    all.arrive_and_wait();
  });
}

}  // namespace
}  // namespace lockflight::test
