// Where the words of flight-rw's readers lie. Each node has a gate, and beside it a cell in which
// all of its readers count themselves. Where many share a node there are cells for so many of them
// each instead, so that what a reader writes is not the line that all others write; and if that may
// change while the lock is in use, there are two kinds of them: for few ranks each, and for more.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <vector>

#include "lockflight/lock/flight_rw_parameters.hpp"
#include "lockflight/lock/gate.hpp"
#include "lockflight/lock/gate_tree.hpp"
#include "lockflight/lock/node_word.hpp"
#include "lockflight/rma/layout.hpp"
#include "lockflight/rma/topology.hpp"

namespace lockflight::lock {

struct reader_cells {
  rma::cpu_cell gates;      // of nodes, at the lock's home; the word behind one counts all there
  rma::cpu_cell errands;    // of nodes, on a line of their own: readers keep the gate's busy. The
                            // word behind is the number of the last wish that was taken back
  rma::cpu_cell counts{};   // of those who share a cell, on a line of the first of them
  int ranks_of_a_cell = 0;  // 0: a node has one, beside its gate
  int ranks_together = 0;  // that share one of the other kind, in the word behind; 0: there is none
  gate_tree tree;
  int pointers = 0;         // nodes of a directory (gate_directory.hpp); 0: there is none
  int broadcast = 0;        // beyond so many all gates are opened
  rma::plain_cell says;     // its words, at the home: what the gates say that are in use,
  rma::nic_cell listed;     // and of which nodes they are, a `node_set`
  bool starts_open = true;  // or as after turns that have met nobody

  /// One line on every rank, used on those that host a gate, and with a directory or a tree another
  /// one; if a node has several cells one more, used on those that host a cell. `beside` are four
  /// words of those that flight has, and what they are used for if all are to lie on one line.
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
    const int all = ranks_of_a_node(machine);
    const int ranks = asked != 0 ? static_cast<int>(asked)
                      : moves    ? fewest(machine)
                                 : some(machine);
    if (ranks >= all) return made;
    const int more = asked != 0 && some(machine) <= asked ? all : std::min(some(machine), all);
    made.counts = in.take<rma::cpu_cell>(2);
    made.ranks_of_a_cell = ranks;
    made.ranks_together = moves && more > ranks ? more : 0;
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
  /// A cell at its host; of those who share it with more, or not.
  [[nodiscard]] rma::cpu_cell at(rma::rank_t host, bool together) const {
    return several() ? counts.at(host) + (together ? 1 : 0) : rma::cpu_cell{host, gates.index + 1};
  }
  /// The one for a rank.
  [[nodiscard]] rma::cpu_cell of_rank(const rma::topology& machine, rma::rank_t rank,
                                      bool together) const {
    if (!several()) return at(gate_of(machine, rank).home, false);
    const int share = together ? ranks_together : ranks_of_a_cell;
    rma::rank_t host = rank;
    int before = 0;
    if (share > 1)
      for (rma::rank_t r = machine.leader_of(rank, machine.node_level()); r <= rank; ++r)
        if (machine.same_node(r, rank) && before++ % share == 0) host = r;
    return at(host, together);
  }

  // Of the nodes from `first` until before `past`.
  template <class Visit>
  void for_each_gate(const rma::topology& machine, int first, int past, Visit visit) const {
    for (int i = first; i < past; ++i)
      visit(i, gate_of(machine, machine.leader(machine.node_level(), i)));
  }
  /// The ranks that host cells, of both kinds.
  template <class Visit>
  void for_each_host(const rma::topology& machine, int first, int past,
                     std::pmr::memory_resource* memory, Visit visit) const {
    if (!several())
      return for_each_gate(machine, first, past,
                           [&](int, rma::cpu_cell of) { visit(of.home, false); });
    std::pmr::vector<int> met(static_cast<std::size_t>(past - first), 0, memory);
    for (rma::rank_t r = 0; r < machine.ranks(); ++r) {
      const int node = machine.node_of(r);
      if (node < first || node >= past) continue;
      const int before = met[static_cast<std::size_t>(node - first)]++;
      if (before % ranks_of_a_cell == 0) visit(r, false);
      if (two_kinds() && before % ranks_together == 0) visit(r, true);
    }
  }

  /// About how many of one kind there are.
  [[nodiscard]] int of_all_nodes(const rma::topology& machine) const {
    return several() ? (machine.ranks() + ranks_of_a_cell - 1) / ranks_of_a_cell : machine.nodes();
  }

  [[nodiscard]] static int ranks_of_a_node(const rma::topology& machine) {
    return (machine.ranks() + machine.nodes() - 1) / machine.nodes();
  }

 private:
  // On one node readers share nothing at all. Else a cell more costs a writer a get each time that
  // it closes the gates: not too many on all nodes together.
  [[nodiscard]] static int fewest(const rma::topology& machine) {
    constexpr int most_cells = 64;
    return machine.nodes() == 1 ? 1 : (machine.ranks() + most_cells - 1) / most_cells;
  }
  // And so few that a writer that seldom meets a reader does not look at many in vain.
  [[nodiscard]] static int some(const rma::topology& machine) {
    constexpr int least = 16;
    return machine.nodes() == 1 ? 1 : std::max(fewest(machine), least);
  }
};

}  // namespace lockflight::lock
