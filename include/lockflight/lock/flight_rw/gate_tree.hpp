// How the gates of many nodes are closed and opened as a tree of two levels: so many nodes after
// one another are a branch, and a reader that waits on the first of them is the writer's deputy
// there.
//
// A put needs nobody at its target; a tree needs somebody at its inner vertices who passes the word
// on, and nobody can be relied on to be there. But a reader that has parked at a closed gate has
// nothing else to do, and where many read there is one as soon as the gate is closed. So the writer
// puts the gate of a branch's first node with the wish for a deputy, and a number that no wish has
// had before. A reader parked there takes that on as its errand, in a word of the node. It puts the
// other gates of the branch, waits until nobody reads there any more if they are closed now, and
// says in the same word that it has done so. The writer looks at it as it looks at the counts of
// readers elsewhere. Where nobody has taken on the errand after a few looks it takes back its wish,
// by the number, in another word there, and does it itself, unless it finds after that that
// somebody has: a reader that takes it on looks at that other word before it does anything. So of a
// writer and a deputy at least one sees the other, the writer waits for a deputy that it sees, and
// no gate is put late.
//
// Source: lockflight. That two who write and then look do not miss each other is how readers and
// writers meet at a gate, too (flight_rw.hpp).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "lockflight/rma/backoff.hpp"
#include "lockflight/rma/cell.hpp"
#include "lockflight/rma/topology.hpp"

namespace lockflight::lock {

/// What a node's deputy has taken on last. Zeroed memory: what nobody has wished for is done.
struct errand {
  rma::word wish = 0;  ///< its number
  bool under_way = false;

  friend constexpr bool operator==(errand, errand) = default;
  [[nodiscard]] static constexpr errand from(rma::word bits) {
    return {bits >> 1, (bits & 1) != 0};
  }
  [[nodiscard]] constexpr rma::word bits() const { return wish << 1 | rma::word{under_way}; }
};

/// Which nodes are a branch.
struct gate_tree {
  int nodes = 0;
  int of_a_branch = 0;  // nodes; 0: the writer does everything itself

  /// `asked`: nodes of a branch; 1: no tree; 0: the square root of all, if there are that many that
  /// a tree is worth it.
  [[nodiscard]] static gate_tree of(const rma::topology& machine, std::int64_t asked) {
    constexpr int least_nodes = 128;
    const int nodes = machine.nodes();
    const int good = nodes < least_nodes ? 1 : static_cast<int>(std::sqrt(nodes));
    const auto branch = std::min<std::int64_t>(asked != 0 ? asked : good, nodes);
    return {nodes, branch > 1 && branch < nodes ? static_cast<int>(branch) : 0};
  }

  [[nodiscard]] bool grows() const { return of_a_branch > 0; }
  [[nodiscard]] int branches() const {
    return grows() ? (nodes + of_a_branch - 1) / of_a_branch : 0;
  }
  [[nodiscard]] int branch_of(int node) const { return grows() ? node / of_a_branch : 0; }
  [[nodiscard]] int first_node(int branch) const { return branch * of_a_branch; }
  [[nodiscard]] int past_nodes(int branch) const {
    return std::min(nodes, (branch + 1) * of_a_branch);
  }
  /// A look at one branch and at the other ones' errands is cheap, and others wait for its result.
  [[nodiscard]] rma::backoff between_looks() const {
    return rma::backoff(200, grows() ? 2'000 : 20'000);
  }
};

}  // namespace lockflight::lock
