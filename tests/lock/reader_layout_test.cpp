// Where flight-rw's counters lie.
#include "lockflight/lock/flight_rw/layout.hpp"

#include <gtest/gtest.h>

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
    const rma::cpu_cell gate = where.gate_of(machine, r);
    const rma::cpu_cell own = where.counter_of(machine, r);
    EXPECT_EQ(own.home, gate.home);
    EXPECT_EQ((own.index - where.counter(gate, 0).index) % rma::line_words, 0u);
  }
}

}  // namespace
}  // namespace lockflight::test
