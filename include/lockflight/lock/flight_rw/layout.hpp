// The places of the words of flight-rw's readers. Each node has a gate and beside it a counter, or,
// if many ranks share the node, a counter for every few ranks, on lines in a row: a writer of
// another node gets all of them by one operation, so one more costs the bytes and no round trip. On
// a single node each counter lies at the first of its ranks, so that counting does not wake the
// ranks that wait at the gate, unless all of a lock's words are to be at its home (`rows_at_home`).
#pragma once

#include <algorithm>
#include <cstdint>

#include "lockflight/lock/flight/node_word.hpp"
#include "lockflight/lock/flight_rw/gate.hpp"
#include "lockflight/lock/flight_rw/parameters.hpp"
#include "lockflight/rma/layout.hpp"
#include "lockflight/rma/topology.hpp"

namespace lockflight::lock {

struct reader_layout {
  static constexpr int most_counters = 32;  // so that a get of them is half of a network's packet
  static constexpr int most_bytes_of_counters =
      most_counters * static_cast<int>(rma::line_words * sizeof(rma::word));

  rma::cpu_cell gates;   // of nodes, each at its host; the word behind one counts all there
  rma::nic_cell listed;  // at the home: a node_set, the directory
  rma::cpu_cell rows{};  // of counters, at the gates' hosts, or a line at the first rank of each
  bool in_rows = true;
  int counters = 0;          // of a node; 0: one, beside its gate
  int ranks_of_counter = 1;  // that share one
  bool has_directory = false;

  /// Reserves one line on every rank, used on the ranks that host a gate, and if there is a
  /// directory another one at the home; if a node has several counters one more for each, on one
  /// node one more. `beside` are three words of flight's line, which are used if all are to lie on
  /// one line.
  static reader_layout place(rma::layout& in, const rma::topology& machine,
                             const flight_rw_parameters& set, rma::rank_t home,
                             rma::plain_cell beside) {
    const bool one_line = set.writers.one_line == 1;
    reader_layout made;
    made.has_directory = machine.nodes() > 1 && machine.nodes() <= most_listed;
    made.gates =
        one_line ? rma::cpu_cell{beside.home, beside.index} : in.take<rma::cpu_cell>(2).at(home);
    if (one_line)
      made.listed = {beside.home, beside.index + 2};
    else if (made.has_directory)
      made.listed = in.take<rma::nic_cell>(1).at(home);
    const int ranks = machine.largest_node();
    made.ranks_of_counter = set.ranks_per_cell != 0
                                ? static_cast<int>(set.ranks_per_cell)
                                : ranks_that_share(machine, static_cast<int>(set.few_ranks));
    if (made.ranks_of_counter >= ranks) return made;
    made.counters = parts(ranks, made.ranks_of_counter);
    made.in_rows = machine.nodes() > 1 || set.rows_at_home;
    made.rows = in.take<rma::cpu_cell>(lines(made.in_rows ? made.counters : 1));
    return made;
  }

  /// Zeroed memory is what a lock starts as: the home's gate is open, and if there is a directory
  /// no other node is listed.
  [[nodiscard]] gate_cell<> gate_of(const rma::topology& machine, rma::rank_t rank) const {
    const rma::cpu_cell cell = gates.at(node_host(machine, rank, gates.home));
    const bool starts_unlisted = has_directory && cell.home != gates.home;
    return {cell, starts_unlisted ? gate{}.as(gate::state::unlisted) : gate{}};
  }
  [[nodiscard]] gate_cell<> gate_of_node(const rma::topology& machine, int node) const {
    return gate_of(machine, machine.leader(machine.node_level(), node));
  }

  [[nodiscard]] int counters_of_node() const { return std::max(counters, 1); }
  /// Behind a gate, by number; if nodes are several on lines in a row.
  [[nodiscard]] rma::cpu_cell counter(rma::cpu_cell gate, int number) const {
    if (counters == 0) return gate + 1;
    return in_rows ? rows.at(gate.home) + lines(number) : rows.at(number * ranks_of_counter);
  }
  [[nodiscard]] rma::cpu_cell counter_of(const rma::topology& machine, rma::rank_t rank) const {
    int before = machine.nodes() == 1 ? rank : 0;  // ranks of its node
    if (machine.nodes() > 1 && counters != 0)
      for (rma::rank_t r = machine.leader_of(rank, machine.node_level()); r < rank; ++r)
        if (machine.same_node(r, rank)) ++before;
    return counter(gate_of(machine, rank).cell, before / ranks_of_counter);
  }
  /// True if a rank has its counter to itself.
  [[nodiscard]] bool is_alone(const rma::topology& machine) const {
    return ranks_of_counter == 1 || machine.ranks() == 1;
  }

 private:
  static constexpr int most_listed = 64;  // bits of a node_set

  [[nodiscard]] static constexpr std::uint32_t lines(int count) {
    return static_cast<std::uint32_t>(count) * rma::line_words;
  }
  [[nodiscard]] static constexpr int parts(int ranks, int share) {
    return (ranks + share - 1) / share;
  }
  [[nodiscard]] static int ranks_that_share(const rma::topology& machine, int few) {
    // On one node readers share nothing at all.
    return machine.nodes() == 1 ? 1 : std::max(few, parts(machine.largest_node(), most_counters));
  }
};

}  // namespace lockflight::lock
