// The word of a node's lock (flight/node_lock.hpp), and where the words of a node lie.
#pragma once

#include "lockflight/rma/cell.hpp"
#include "lockflight/rma/packed.hpp"
#include "lockflight/rma/topology.hpp"

namespace lockflight::lock {

/// A node's word: whether the lock is held, and, while it is free, the value that its last holder
/// passes to the next one. Zeroed memory is free.
struct node_word : rma::packed<node_word> {
  static constexpr rma::field held{0, 1};      ///< by a participant that has the top, or fetches it
  static constexpr rma::field with_top{1, 1};  ///< free, and the node has the top (flight.hpp)
  static constexpr rma::field reserved{2, 1};  ///< free, for the queue's head alone
  static constexpr rma::field barging{3, 1};   ///< free while others wait, and others may barge
  static constexpr rma::field value{4, 13};    ///< the handoff value, the user's
  static constexpr rma::field overtaken{17, 14};  ///< how often the queue's head was
  static constexpr rma::field in_a_row{32, 16};   ///< acquires of this node since it has the top
  static constexpr rma::field left{48, 16};       ///< nodes that the top may still be passed to
  static_assert(rma::are_disjoint({held, with_top, reserved, barging, value, overtaken, in_a_row,
                                   left}));

  /// True if the word is free and was released while others waited.
  [[nodiscard]] constexpr bool is_passed() const { return has(reserved) || has(barging); }
  /// True if the node has the top, or wants it: its flag in Peterson's algorithm.
  [[nodiscard]] constexpr bool is_interested() const { return has(held) || has(with_top); }
};

/// The rank that hosts the words of rank's node for a lock whose home is given: the home for its
/// own node, so that all that is there lies together, else the node's leader.
[[nodiscard]] inline rma::rank_t node_host(const rma::topology& machine, rma::rank_t rank,
                                           rma::rank_t home) {
  return machine.same_node(rank, home) ? home : machine.leader_of(rank, machine.node_level());
}

}  // namespace lockflight::lock
