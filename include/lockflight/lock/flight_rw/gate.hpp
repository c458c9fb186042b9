// The words of flight-rw: what a gate says and how it is stored, how readers are counted, what a
// writer passes to the next one, and sets of nodes. flight_rw.hpp has the protocol.
#pragma once

#include <cstdint>

#include "lockflight/lock/flight/node_word.hpp"
#include "lockflight/rma/packed.hpp"
#include "lockflight/rma/port.hpp"

namespace lockflight::lock {

/// The value of a gate. docs/gates.svg draws its states and the transitions between them: each
/// edge is a function of writer_side.hpp or reader_side.hpp with the name that the edge has there.
struct gate : rma::packed<gate> {
  enum class state : std::uint8_t {
    open = 0,      // readers enter
    closed = 1,    // by a writer that is in or coming, and will open it
    idle = 2,      // no writer need be there: a reader must take flight to open it
    opening = 3,   // as idle, and a reader is about to take flight
    unlisted = 4,  // writers do not close it: a reader must list its node to open it
    claimed = 5,   // a reader lists the node, or waits for the home's gate to open
  };
  static constexpr rma::field of_state{0, 3};
  static constexpr rma::field of_epoch{3, 2};
  static constexpr rma::field quiet{5, 1};  ///< no reader came in the writers' phase before
  static constexpr rma::field all{6, 1};    ///< all nodes' gates say this, listed or not
  static_assert(rma::are_disjoint({of_state, of_epoch, quiet, all}));

  [[nodiscard]] constexpr state what() const { return static_cast<state>(get(of_state)); }
  [[nodiscard]] constexpr bool is(state s) const { return what() == s; }
  [[nodiscard]] constexpr rma::word epoch() const { return get(of_epoch); }
  /// True if the gate is one of the present phase. Its value is then that of the home's gate (R6).
  [[nodiscard]] constexpr bool shows_phase() const { return is(state::open) || is(state::closed); }
  /// True if the gate stays as it is until a reader acts.
  [[nodiscard]] constexpr bool needs_reader() const {
    return is(state::idle) || is(state::unlisted);
  }
  /// True if the gate stays closed until a participant that has taken flight opens it.
  [[nodiscard]] constexpr bool needs_flight() const {
    return is(state::idle) || is(state::opening);
  }
  /// True if the gate lets in a reader that parked at that epoch (R3). No writer waits for a reader
  /// behind a gate in another state.
  [[nodiscard]] constexpr bool lets_in(rma::word parked_at) const {
    return shows_phase() && (epoch() - parked_at) % 2 != 0;
  }

  [[nodiscard]] constexpr gate as(state s) const {
    return with(of_state, static_cast<rma::word>(s));
  }
  /// Open for the readers' phase after this writers' phase.
  [[nodiscard]] constexpr gate next_phase(bool was_quiet) const {
    return as(state::open).with(of_epoch, epoch() + 1).with(quiet, was_quiet ? 1 : 0);
  }
};

/// A gate in memory, and the only place that knows how it is stored: as what it says xor what
/// zeroes say there. So zeroed memory is a lock that nobody has used (reader_layout::gate_of).
template <class Cell = rma::cpu_cell>
struct gate_cell {
  Cell cell;
  gate zeroes;  // the meaning of a word of zeroes

  [[nodiscard]] constexpr gate decoded(rma::word stored) const {
    return gate::from(stored ^ zeroes.bits());
  }
  [[nodiscard]] constexpr rma::word encoded(gate says) const { return says.bits() ^ zeroes.bits(); }

  [[nodiscard, gnu::always_inline]] gate load(rma::port auto& port) const {
    return decoded(port.load(cell));
  }
  [[nodiscard]] gate get_now(rma::port auto& port) const {
    return decoded(rma::get_now(port, cell));
  }
  void store(rma::port auto& port, gate says) const { port.store(cell, encoded(says)); }
  void put(rma::port auto& port, gate says) const { port.put(cell, encoded(says)); }
  /// True if the gate's value was `from`, and is `to` now.
  [[nodiscard]] bool replace(rma::port auto& port, gate from, gate to) const {
    return port.cpu_compare_swap(cell, encoded(from), encoded(to)) == encoded(from);
  }
  /// Waits until `done` is true of the gate, or time is over, and returns the gate of then.
  [[nodiscard]] gate await(rma::port auto& port, auto done, auto until) const {
    rma::word stored = 0;
    static_cast<void>(rma::await(
        port, cell, [this, done](rma::word now) { return done(decoded(now)); }, until, stored));
    return decoded(stored);
  }
};

/// The readers of a counter: how many are active, and how many are left of those that parked in
/// even and in odd epochs.
struct reader_count : rma::packed<reader_count> {
  static constexpr rma::field active{0, 20};
  static constexpr rma::field even{20, 20};
  static constexpr rma::field odd{40, 20};
  static_assert(rma::are_disjoint({active, even, odd}));

  [[nodiscard]] static constexpr rma::field parked(rma::word epoch) {
    return epoch % 2 == 0 ? even : odd;
  }
  /// The count of one reader in that field.
  [[nodiscard]] static constexpr rma::word one(rma::field f) { return rma::word{1} << f.at; }
  /// True if the writer that has closed the gates for `epoch` may enter (R2).
  [[nodiscard]] constexpr bool is_gone(rma::word epoch) const {
    return !has(active) && !has(parked(epoch - 1));
  }
};

/// The handoff value of flight-rw's writers: a writers' phase that goes on, or that the gates are
/// idle. All zeroes say nothing.
struct phase : rma::packed<phase> {
  static constexpr rma::field quiet{0, 1};     ///< no reader was there when the gates were closed
  static constexpr rma::field writers{1, 12};  ///< writers that have had the lock since then
  static_assert(rma::are_disjoint({quiet, writers}));
  static_assert(writers.at + writers.bits <= node_word::value.bits, "it fits into a node's word");

  /// A phase that goes on has had a writer at least; idle gates have a value that it never has.
  [[nodiscard]] constexpr bool goes_on() const { return has(writers); }
  [[nodiscard]] static constexpr phase idle_gates() { return from(1); }
};

/// A set of nodes, one bit each, of 64 at most.
using node_set = rma::word;
constexpr node_set all_nodes = ~node_set{0};
[[nodiscard]] constexpr node_set set_of(int node) {
  return node_set{1} << static_cast<unsigned>(node % 64);
}
[[nodiscard]] constexpr bool has(node_set nodes, int node) { return (nodes & set_of(node)) != 0; }

}  // namespace lockflight::lock
