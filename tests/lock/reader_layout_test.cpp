// Where flight-rw's counters lie.
#include "lockflight/lock/flight_rw/layout.hpp"

#include <gtest/gtest.h>

#include <set>

#include "lockflight/fabric/shm.hpp"
#include "lockflight/lock/flight_rw.hpp"

namespace lockflight::test {
namespace {

using lock::reader_layout;

[[nodiscard]] reader_layout placed(const rma::topology& machine) {
  constexpr rma::rank_t home = 0;
  rma::layout in(1u << 12);
  return reader_layout::place(in, machine, {}, home, {home, 0});
}

// What is written at a rank wakes those that sleep on a cell there. Were the counters of all
// readers at the home of the gate, each read would wake those that wait for it to open.
TEST(reader_layout, on_one_node_counting_wakes_nobody_at_the_gate) {
  const auto machine = rma::topology::flat(8);
  const reader_layout where = placed(machine);
  for (rma::rank_t r = 0; r < machine.ranks(); ++r) {
    const rma::cpu_cell own = where.counter_of(machine, r);
    EXPECT_EQ(own.home, r);
    EXPECT_EQ(own, where.counter(where.gates, r)) << "where a writer reads it";
  }
}

TEST(reader_layout, between_nodes_the_counters_of_a_node_are_a_row_that_one_get_fetches) {
  const auto machine = rma::topology::balanced({2, 8});
  const reader_layout where = placed(machine);
  ASSERT_GT(where.counters_of_node(), 1);
  for (rma::rank_t r = 0; r < machine.ranks(); ++r) {
    const rma::cpu_cell gate = where.gate_of(machine, r).cell;
    const rma::cpu_cell own = where.counter_of(machine, r);
    EXPECT_EQ(own.home, gate.home);
    EXPECT_EQ((own.index - where.counter(gate, 0).index) % rma::line_words, 0u);
  }
}

// For memory that outlives its ranks: all that a lock has lies in one place, whatever the rank of a
// reader.
TEST(reader_layout, rows_at_home_leave_nothing_elsewhere) {
  constexpr rma::rank_t home = 0;
  constexpr int ranks = 4'096;
  constexpr int share = 512;
  const auto machine = rma::topology::flat(ranks);
  lock::flight_rw_parameters set{
      .ranks_per_cell = share, .writers = {.one_line = 1}, .rows_at_home = true};
  rma::layout in(1u << 12);
  const std::uint32_t before = in.used();
  const auto made = lock::flight_rw<shm::port>::cells::place(in, machine, set, home);
  constexpr std::uint32_t counters = ranks / share;
  EXPECT_EQ(in.used() - before, (1 + counters) * rma::line_words);

  const auto line_of = [&](const auto& cell) {
    EXPECT_EQ(cell.home, home);
    return (cell.index - before) / rma::line_words;
  };
  const reader_layout& where = made.readers;
  EXPECT_EQ(line_of(made.writers.lines), 0u);
  EXPECT_EQ(line_of(made.writers.tail), 0u);
  EXPECT_EQ(line_of(made.writers.victim), 0u);
  EXPECT_EQ(line_of(where.gates), 0u);
  std::set<std::uint32_t> lines;
  for (rma::rank_t r = 0; r < ranks; ++r) {
    EXPECT_EQ(line_of(made.writers.line_of(machine, r)), 0u);
    EXPECT_EQ(where.gate_of(machine, r).cell, where.gates);
    const rma::cpu_cell own = where.counter_of(machine, r);
    EXPECT_EQ(own, where.counter(where.gates, r / share)) << "where a writer reads it";
    lines.insert(line_of(own));
  }
  EXPECT_EQ(lines.size(), counters);
  EXPECT_EQ(*lines.begin(), 1u) << "beside the gate's";
  EXPECT_EQ(*lines.rbegin(), counters);
}

TEST(reader_layout, a_node_of_one_counter_has_it_beside_the_gate) {
  const auto machine = rma::topology::balanced({2, 8});
  rma::layout in(1u << 12);
  const reader_layout where = reader_layout::place(in, machine, {.ranks_per_cell = 8}, 0, {0, 0});
  for (rma::rank_t r = 0; r < machine.ranks(); ++r)
    EXPECT_EQ(where.counter_of(machine, r), where.gate_of(machine, r).cell + 1);
}

}  // namespace
}  // namespace lockflight::test
