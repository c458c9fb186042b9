// Where the words of flight-rw's readers lie. Each node has a gate, and beside it a cell in which
// all of its readers count themselves. Where many share a node there are cells for so many of them
// each instead, so that what a reader writes is not the line that all others write; and if that may
// change while the lock is in use, there are two kinds of them: for few ranks each, and for more.
//
// The cells of a node lie on lines in a row, so that a writer elsewhere gets all of them by one
// operation: a reader more that has a line to itself costs it the bytes, and no round trip or post.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lockflight/lock/flight/node_word.hpp"
#include "lockflight/lock/flight_rw/gate.hpp"
#include "lockflight/lock/flight_rw/gate_tree.hpp"
#include "lockflight/lock/flight_rw/parameters.hpp"
#include "lockflight/rma/layout.hpp"
#include "lockflight/rma/topology.hpp"

namespace lockflight::lock {

struct reader_cells {
  rma::cpu_cell gates;      // of nodes, at the lock's home; the word behind one counts all there
  rma::cpu_cell errands;    // of nodes, on a line of their own: readers keep the gate's busy. The
                            // word behind is the number of the last wish that was taken back
  rma::cpu_cell counts{};   // of those who share a cell: on lines in a row at their gate's host,
                            // or, on one node, on a line of the first of them
  int ranks_of_a_cell = 0;  // 0: a node has one, beside its gate
  int ranks_together = 0;  // that share one of the other kind, in the word behind; 0: there is none
  int in_a_row = 0;        // lines of that row; 0: on one node
  gate_tree tree;
  int pointers = 0;         // nodes of a directory (flight_rw/directory.hpp); 0: there is none
  int broadcast = 0;        // beyond so many all gates are opened
  rma::plain_cell says;     // its words, at the home: what the gates say that are in use,
  rma::nic_cell listed;     // and of which nodes they are, a `node_set`
  bool starts_open = true;  // or as after turns that have met nobody

  /// One line on every rank, used on those that host a gate, and with a directory or a tree another
  /// one; if a node has several cells one more for each, used on those that host a gate, or on one
  /// node one more. `beside` are four words of those that flight has, and what they are used for if
  /// all are to lie on one line.
  static reader_cells place(rma::layout& in, const rma::topology& machine,
                            const flight_rw_parameters& set, rma::rank_t home,
                            rma::plain_cell beside) {
    const std::int64_t asked = set.ranks_per_cell;
    const bool moves = set.adaptive != 0;
    const auto tree = gate_tree::of(machine, set.branch);
    const bool one_line = set.writers.one_line == 1;
    const auto gates =
        one_line ? rma::cpu_cell{beside.home, beside.index} : in.take<rma::cpu_cell>(2).at(home);
    const auto errands = tree.grows() ? in.take<rma::cpu_cell>(2) : rma::cpu_cell{};
    const int pointers = set.pointers_on(machine, tree.grows());
    const auto says = one_line       ? beside + 2
                      : pointers > 0 ? in.take<rma::plain_cell>(2).at(home)
                                     : rma::plain_cell{home, 0};
    reader_cells made{.gates = gates,
                      .errands = errands,
                      .tree = tree,
                      .pointers = pointers,
                      .broadcast = set.broadcast_on(machine),
                      .says = says,
                      .listed = {says.home, says.index + 1},
                      .starts_open = set.starts_open_on(machine, pointers)};
    const int all = machine.largest_node();
    const int ranks = asked != 0 ? static_cast<int>(asked)
                                 : std::max(fewest(machine), few_on(machine, set, moves));
    if (ranks >= all) return made;
    const int more = asked != 0 && together <= asked ? all : std::min(together, all);
    made.ranks_of_a_cell = ranks;
    made.ranks_together = moves && more > ranks ? more : 0;
    made.in_a_row = machine.nodes() > 1 ? cells_for(all, ranks) : 0;
    const int lines = std::max(made.in_a_row, 1);
    made.counts = in.take<rma::cpu_cell>(static_cast<std::uint32_t>(lines) * rma::line_words);
    return made;
  }

  [[nodiscard]] bool several() const { return ranks_of_a_cell > 0; }
  [[nodiscard]] bool two_kinds() const { return ranks_together > 0; }

  [[nodiscard]] rma::cpu_cell gate_of(const rma::topology& machine, rma::rank_t rank) const {
    return gates.at(node_host(machine, rank, gates.home));
  }
  /// The gate at a host, and what the directory at its home says, are in memory xor this, so that
  /// zeroed memory is what a lock starts as.
  [[nodiscard]] rma::word zero_of_gate(rma::rank_t host) const {
    if (starts_open) return 0;
    if (pointers == 0) return gate{}.as(gate::state::idle).bits();
    const bool at_home = host == gates.home;
    return gate{}.as(at_home ? gate::state::open : gate::state::unlisted).of_few_nodes().bits();
  }
  /// What the deputy on a node has taken on, an `errand`.
  [[nodiscard]] rma::cpu_cell errand_of(const rma::topology& machine, int node) const {
    return errands.at(gate_of(machine, machine.leader(machine.node_level(), node)).home);
  }
  /// The number of the last wish for one that the writer has taken back.
  [[nodiscard]] rma::plain_cell dismissal_of(const rma::topology& machine, int node) const {
    const auto errand = errand_of(machine, node);
    return {errand.home, errand.index + 1};
  }
  /// The cell for a rank; of those who share it with more, or not.
  [[nodiscard]] rma::cpu_cell of_rank(const rma::topology& machine, rma::rank_t rank,
                                      bool with_more) const {
    const auto gate = gate_of(machine, rank);
    if (!several()) return beside(gate);
    const int share = with_more ? ranks_together : ranks_of_a_cell;
    int before = 0;
    for (rma::rank_t r = machine.leader_of(rank, machine.node_level()); r < rank; ++r)
      if (machine.same_node(r, rank)) ++before;
    if (in_a_row == 0) return counts.at(before / share * share) + word_of(with_more);
    return line(gate.home, before / share) + word_of(with_more);
  }

  // Of the nodes from `first` until before `past`.
  template <class Visit>
  void for_each_gate(const rma::topology& machine, int first, int past, Visit visit) const {
    for (int i = first; i < past; ++i)
      visit(i, gate_of(machine, machine.leader(machine.node_level(), i)));
  }
  /// Cells on lines in a row: the first one's node, itself, how many they are, and of which kind.
  template <class Visit>
  void for_each_row(const rma::topology& machine, int first, int past, Visit visit) const {
    if (several() && in_a_row == 0) {
      for (rma::rank_t r = 0; r < machine.ranks(); r += ranks_of_a_cell)
        visit(0, counts.at(r), 1, false);
      for (rma::rank_t r = 0; two_kinds() && r < machine.ranks(); r += ranks_together)
        visit(0, counts.at(r) + word_of(true), 1, true);
      return;
    }
    for_each_gate(machine, first, past, [&](int node, rma::cpu_cell of) {
      if (!several()) return visit(node, beside(of), 1, false);
      visit(node, line(of.home, 0), lines(machine, false), false);
      if (two_kinds()) visit(node, line(of.home, 0) + word_of(true), lines(machine, true), true);
    });
  }

  /// What a writer looks at when it closes the gates: the rows of all nodes, or the cells of one.
  [[nodiscard]] int looks(const rma::topology& machine) const {
    return machine.nodes() > 1 || !several() ? machine.nodes()
                                             : cells_for(machine.ranks(), ranks_of_a_cell);
  }

 private:
  // So that a look is half of what a network has in a packet.
  static constexpr int most_in_a_row = 32;
  static constexpr int together = flight_rw_parameters::where_few_read;

  [[nodiscard]] static constexpr int cells_for(int ranks, int share) {
    return (ranks + share - 1) / share;
  }
  [[nodiscard]] int lines(const rma::topology& machine, bool with_more) const {
    return with_more ? cells_for(machine.largest_node(), ranks_together) : in_a_row;
  }
  [[nodiscard]] static std::uint32_t word_of(bool with_more) { return with_more ? 1 : 0; }
  [[nodiscard]] static rma::cpu_cell beside(rma::cpu_cell gate) { return gate + 1; }
  [[nodiscard]] rma::cpu_cell line(rma::rank_t host, int number) const {
    return counts.at(host) + static_cast<std::uint32_t>(number) * rma::line_words;
  }
  // On one node readers share nothing at all. Else a row has a line for each, if that is not too
  // long.
  [[nodiscard]] static int fewest(const rma::topology& machine) {
    return machine.nodes() == 1 ? 1 : cells_for(machine.largest_node(), most_in_a_row);
  }
  // A line costs writers little there, and readers that share one much. Where cells may move there
  // are twice as many of those for few.
  [[nodiscard]] static int few_on(const rma::topology& machine, const flight_rw_parameters& set,
                                  bool moves) {
    if (machine.nodes() == 1) return 1;
    return static_cast<int>(moves ? set.few_ranks / 2 : set.few_ranks);
  }
};

}  // namespace lockflight::lock
