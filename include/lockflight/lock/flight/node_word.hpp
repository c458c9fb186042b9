// What the lock of a node (flight/node_lock.hpp) keeps in its word, and where that lies.
#pragma once

#include <cstdint>

#include "lockflight/rma/cell.hpp"
#include "lockflight/rma/topology.hpp"

namespace lockflight::lock {

/// The word of a node: who may take it, and, while it is free, what its last holder keeps for the
/// next one; if nobody waits that is a note at most. Zeroed memory is free.
/// Bit-fields in the order of `bits`, so that it is in one register and both are little more than a
/// move: what is stored in pieces and loaded as a whole waits for the store buffer, some 5 ns each
/// time, and a lock that is passed on does that several times.
struct node_word {
  bool held : 1 = false;         ///< by a participant that has the lock above, or is fetching it
  bool with_top : 1 = false;     ///< free, and the node has the lock above
  bool reserved : 1 = false;     ///< free, for the queue's head alone
  rma::word note : 13 = 0;       ///< the user's
  rma::word passed_by : 14 = 0;  ///< others that have come past the queue's head
  bool retaken : 1 = false;      ///< one of them had put the word down itself, just before
  bool barging : 1 = false;      ///< free, and others may come past it
  std::uint16_t in_a_row = 0;    ///< acquires of this node since it has the lock above
  std::uint16_t left = 0;        ///< nodes that the lock above may still be passed to

  static constexpr rma::word most_note = (1u << 13) - 1;
  static constexpr rma::word most_passed_by = (1u << 14) - 1;

  [[nodiscard]] static constexpr node_word from(rma::word w) {
    return {.held = (w & 1) != 0,
            .with_top = (w >> 1 & 1) != 0,
            .reserved = (w >> 2 & 1) != 0,
            .note = w >> 3 & most_note,
            .passed_by = w >> 16 & most_passed_by,
            .retaken = (w >> 30 & 1) != 0,
            .barging = (w >> 31 & 1) != 0,
            .in_a_row = static_cast<std::uint16_t>(w >> 32),
            .left = static_cast<std::uint16_t>(w >> 48)};
  }
  [[nodiscard]] constexpr rma::word bits() const {
    return rma::word{held} | rma::word{with_top} << 1 | rma::word{reserved} << 2 |
           rma::word{note} << 3 | rma::word{passed_by} << 16 | rma::word{retaken} << 30 |
           rma::word{barging} << 31 | rma::word{in_a_row} << 32 | rma::word{left} << 48;
  }
  [[nodiscard]] constexpr node_word with_note(std::uint16_t n) const {
    node_word made = *this;
    made.note = n & most_note;
    return made;
  }
  [[nodiscard]] constexpr node_word with_passed_by(rma::word n) const {
    node_word made = *this;
    made.passed_by = n & most_passed_by;
    return made;
  }

  /// Whether it is free and was put down for those who wait.
  [[nodiscard]] constexpr bool is_passed() const { return reserved || barging; }
  /// Whether the node has the lock above, or wants it: its flag in Peterson's algorithm.
  [[nodiscard]] static constexpr bool interested(rma::word w) { return (w & 3) != 0; }
};
static_assert(sizeof(node_word) == sizeof(rma::word));

/// The rank that hosts the words of rank's node for a lock whose home is given: the home for its
/// own node, so that all that is there lies together, else the node's leader.
[[nodiscard]] inline rma::rank_t node_host(const rma::topology& machine, rma::rank_t rank,
                                           rma::rank_t home) {
  return machine.same_node(rank, home) ? home : machine.leader_of(rank, machine.node_level());
}

}  // namespace lockflight::lock
