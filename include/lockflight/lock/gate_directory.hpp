// Of which nodes the gates of flight-rw are in use, if not of all.
//
// A writer that closes gates pays for each of them, and where a lock is read by one node alone
// nobody is behind most. So when turns of writers in a row have met readers on few nodes, the gates
// of the others are left idle. Who reads at an idle gate takes flight, opens the gate of its own
// node and adds that to the directory, two words at the lock's home: what the gates of its nodes
// say, and which ones they are. A writer closes and opens those alone. If readers come on more
// nodes than the directory has pointers, all gates are opened, and each of them says so: nobody
// looks at the directory then.
//
// Only who has flight reads or writes it, and gets it together with flight where posts are ordered.
// While writers pass flight on with their turn it is left as it was, and says open: their note
// tells.
//
// A gate that was idle may have missed epochs. Who parked there does not mind: it enters at odd
// distances, where writers wait for it, comes anew if it finds the gate open at an even one, and if
// it finds that closed it is counted like those who park there now.
//
// Source: lockflight, after directories of caches' sharers that have few pointers and broadcast
// beyond ("An Evaluation of Directory Schemes for Cache Coherence", Agarwal et al., ISCA 1988).
#pragma once

#include <bit>
#include <cstdint>

#include "lockflight/lock/gate.hpp"
#include "lockflight/lock/reader_cells.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::lock {

/// A set of nodes, one bit each; of 64 at most, or of all.
using node_set = rma::word;

template <rma::port Port>
class gate_directory {
 public:
  gate_directory(rma::participant<Port>& me, const reader_cells& where)
      : port_(me.port()),
        where_(where),
        own_gate_(where.gate_of(me.machine(), me.rank())),
        own_(me.machine().node_of(me.rank())),
        is_here_(me.machine().same_node(where.directory.home, me.rank())) {}

  /// Whether there is one. Else all gates say what ours does.
  [[nodiscard]] bool is_kept() const { return where_.pointers > 0; }

  /// Posts 2 gets, which must complete when we have flight, if our gate does not say that those of
  /// all nodes say the same; it may, when we have flight.
  void post() {
    is_posted_ = is_kept() && !is_here_ && own_gate().few();
    if (is_posted_) post_gets();
  }

  /// For who has got flight, with that note, and when `post` was called last, if it `has_posted`.
  /// Costs what `know` does if the own gate is not one of all, and neither tells.
  void start(std::uint16_t note, bool has_posted) {
    if (!is_kept()) return;
    now_ = own_gate();
    is_known_ = !now_.few();
    if (is_known_) return;
    if (writers_turn::is_note_of_one(note))
      now_ = now_.as(gate::state::closed);
    else if (note == writers_turn::are_idle)
      now_ = now_.as(gate::state::idle);
    else
      look(has_posted && is_posted_);
  }

  /// What the gates in use say, for who has flight; but for the epoch, before `know`.
  [[nodiscard]] gate now() { return is_kept() ? now_ : own_gate(); }
  /// All that there is to know. 1 round trip, 2 gets, if the home is elsewhere and the own gate,
  /// the note or an earlier look does not tell.
  void know() {
    if (is_known_ || !is_kept()) return;
    const gate::state state = now_.what();
    look(false);
    now_ = now_.as(state);
  }

  /// Whether the gate of a node is one of those in use.
  [[nodiscard]] bool has(int node) const { return !now_.few() || has(nodes_, node); }
  [[nodiscard]] bool has_own() const { return has(own_); }
  [[nodiscard]] node_set with_own() const { return nodes_ | of(own_); }
  [[nodiscard]] node_set nodes() const { return nodes_; }
  /// More are not worth a closing of their own.
  [[nodiscard]] bool has_room_for(node_set nodes) const {
    return std::popcount(nodes) <= where_.pointers;
  }

  [[nodiscard]] static bool has(node_set nodes, int node) {
    return (nodes >> static_cast<unsigned>(node) & 1) != 0;
  }
  [[nodiscard]] static node_set of(int node) {
    return node_set{1} << static_cast<unsigned>(node % 64);
  }

  /// These gates have been put to say that. 2 puts, to be flushed, if they are few and that is not
  /// left to the end of the writers' turn. Whether it has posted any.
  [[nodiscard]] bool set(gate to, node_set nodes) {
    if (!is_kept()) return false;
    now_ = to;
    nodes_ = nodes;
    if (!to.few() || to.what() == gate::state::closed) return false;
    if (is_here_) {
      port_.store(where_.directory, to.bits());
      port_.store(nodes_cell(), nodes);
    } else {
      port_.put(where_.directory, to.bits());
      port_.put(nodes_cell(), nodes);
    }
    return !is_here_;
  }

 private:
  [[nodiscard]] rma::plain_cell nodes_cell() const {
    return {where_.directory.home, where_.directory.index + 1};
  }
  [[nodiscard]] gate own_gate() { return gate::from(port_.load(own_gate_)); }
  void post_gets() {
    port_.get(where_.directory, says_);
    port_.get(nodes_cell(), nodes_);
  }
  void look(bool is_there) {
    if (is_here_) {
      says_ = port_.load(where_.directory);
      nodes_ = port_.load(nodes_cell());
    } else if (!is_there) {
      post_gets();
      port_.flush(where_.directory.home);
    }
    is_known_ = true;
    now_ = gate::from(says_);
  }

  Port& port_;
  reader_cells where_;
  rma::plain_cell own_gate_;
  int own_;
  bool is_here_;  // at our node: the home
  bool is_posted_ = false;
  bool is_known_ = false;  // what follows
  rma::word says_ = 0;     // as the home has it
  node_set nodes_ = 0;     // if gates are not of all
  gate now_;
};

}  // namespace lockflight::lock
