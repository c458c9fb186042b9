// Of which nodes the gates of flight-rw are in use, if not of all.
//
// A writer that closes gates pays for each of them, and where a lock is read by one node alone
// nobody is behind most. So there is a directory, two words at the lock's home: what the gates in
// use say, and the set of nodes that are listed. Those are in use, and the one of the home's node;
// the others are unlisted, and writers leave them alone. Who reads at such a gate lists its node
// (flight_rw/listing.hpp). A writer says in the directory that the gates are closed, before it
// looks who is listed; then it closes, and later opens, those alone. After turns that met nobody
// all are taken off the list. If more nodes are listed than the directory has pointers, those go at
// the end of each turn where no reader was seen. If they are a good part of all nodes all gates are
// opened
// (`broadcast`), and each of them says so: nobody looks at the directory then, until turns in a row
// have met readers on few nodes. A lock in a table starts with nobody listed, others with all gates
// open (`starts_open`). The gate of the home's node says what the directory does: who has flight
// there looks at that.
//
// Only who has flight writes what the gates say, or takes nodes off the list; it gets the former
// together with flight where posts are ordered. While writers pass flight on with their turn the
// note tells that the gates are closed, and that of a free one may tell that they are idle.
//
// A gate that was unlisted may have missed epochs, and who lists it takes the directory's. Who has
// parked there does not mind: it enters once the gate is in use and at an odd distance, where
// writers wait for it, comes anew if that is open at an even one, and if it finds that closed it is
// counted like those who park there now.
//
// Source: lockflight, after directories of caches' sharers that have few pointers and broadcast
// beyond ("An Evaluation of Directory Schemes for Cache Coherence", Agarwal et al., ISCA 1988).
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "lockflight/lock/flight_rw/gate.hpp"
#include "lockflight/lock/flight_rw/layout.hpp"
#include "lockflight/lock/flight_rw/listing.hpp"
#include "lockflight/lock/flight_rw/writers_turn.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::lock {

template <rma::port Port>
class gate_directory {
 public:
  gate_directory(rma::participant<Port>& me, const reader_cells& where)
      : port_(me.port()),
        where_(where),
        own_gate_(where.gate_of(me.machine(), me.rank())),
        own_(set_of(me.machine().node_of(me.rank()))),
        of_home_(set_of(me.machine().node_of(where.says.home))),
        is_here_(me.machine().same_node(where.says.home, me.rank())),
        listing_(me, where) {}

  /// Whether there is one. Else all gates say what ours does.
  [[nodiscard]] bool is_kept() const { return where_.pointers > 0; }

  /// Posts a get, which must complete when we have flight, if our gate does not say that those of
  /// all nodes say the same; it may, when we have flight.
  void post() {
    is_posted_ = is_kept() && !is_here_ && own_gate().few();
    if (is_posted_) port_.get(where_.says, says_);
  }

  /// For who has got flight, with that note, and when `post` was called last, if it `has_posted`.
  /// 1 round trip, 1 get, if the home is elsewhere, the own gate is not one of all, and neither of
  /// these tells.
  void start(std::uint16_t note, bool has_posted) {
    is_known_ = false;
    is_told_ = note == writers_turn::are_idle || writers_turn::is_note_of_one(note);
    if (is_told_) {  // and if there is a directory idle gates are of few nodes
      const bool are_idle = note == writers_turn::are_idle;
      now_ = gate{}.as(are_idle ? gate::state::idle : gate::state::closed);
      if (is_kept() && are_idle) now_ = now_.of_few_nodes();
      return;
    }
    if (!is_kept()) return;
    look_at_own();
    // The gate of the home's node is always in use.
    if (!is_known_ && !is_here_) look(has_posted && is_posted_);
  }

  /// What the gates in use say, for who has flight; before `know` that may be no more than whether
  /// they are open.
  [[nodiscard]] gate now() { return is_kept() || is_told_ ? now_ : own_gate(); }
  /// Whether `know` tells more.
  [[nodiscard]] bool has_more() const { return is_told_ || (is_kept() && !is_known_); }
  /// All that there is to know. 1 round trip, 2 gets, if the home is elsewhere and neither the own
  /// gate nor an earlier call tells.
  void know() {
    see_whether_few();
    is_told_ = false;
    if (is_known_ || !is_kept()) return;
    is_known_ = true;
    if (is_here_) {
      nodes_ = port_.load(where_.listed);
      now_ = own_gate();
    } else {
      port_.get(where_.listed, nodes_);
      look(false);
    }
  }
  /// Before gates are closed that are not those of all nodes: says so, and then knows of which
  /// nodes they are. 1 put and 1 get, in one round trip where posts are ordered, else in two.
  void announce_closing() {
    if (now_.few()) say_closed();
  }

  /// The nodes whose gates are in use, if they are not those of all.
  [[nodiscard]] node_set nodes() const { return nodes_ | of_home_; }
  /// Whether the gate of a node is one of those in use.
  [[nodiscard]] bool has(int node) const { return !now_.few() || lock::has(nodes(), node); }
  /// Whether it has pointers for them.
  [[nodiscard]] bool has_room_for(node_set nodes) const {
    return std::popcount(nodes & ~of_home_) <= where_.pointers;
  }

  /// Whether so many are listed that all gates had better be opened.
  [[nodiscard]] bool broadcasts() const {
    return std::popcount(nodes_ & ~of_home_) > std::max(where_.broadcast, where_.pointers);
  }

  /// Lists these nodes, and no others, before their gates are put; for who has seen that nobody is
  /// about to list one of the others, behind a gate that is closed or on its way there. 1 round
  /// trip, 1 add, if that is a change, and if gates were those of all what announce_closing costs.
  void list_only(node_set nodes) {
    // Who finds its gate unlisted looks what is said here, and that is an old story.
    if (!now_.few()) say_closed();
    // By a sum, since others list themselves meanwhile; nobody does so whose gate we have closed.
    const node_set others = nodes & ~of_home_;
    if (others != nodes_) {
      port_.add(where_.listed, others - nodes_);
      port_.flush(where_.listed.home);
    }
    nodes_ = others;
  }
  /// Lists the own node, if it is not. As gate_listing::list.
  void list_own() {
    see_whether_few();
    if (!now_.few() || is_here_) return;
    if (const gate own = own_gate(); own.what() == gate::state::unlisted)
      listing_.list(own, port_.deadline_in(0));
    // Or somebody else does, who waits for nobody.
    port_.await(own_gate_, [zero = zero_here()](rma::word w) {
      return gate::from(w ^ zero).what() != gate::state::coming;
    });
    nodes_ |= own_;
  }
  /// For who has listed it.
  [[nodiscard]] bool is_own_open() { return own_gate().what() == gate::state::open; }

  /// These gates are put to say that. 1 put, to be flushed, if they are few and that is not left to
  /// the end of the writers' turn. Whether it has posted any.
  [[nodiscard]] bool set(gate to) {
    if (!is_kept()) return false;
    now_ = to;
    if (!to.few() || to.what() == gate::state::closed) return false;
    write(to);
    return !is_here_;
  }

 private:
  [[nodiscard]] rma::word zero_here() const { return where_.zero_of_gate(own_gate_.home); }
  [[nodiscard]] rma::word zero_at_home() const { return where_.zero_of_gate(where_.says.home); }
  [[nodiscard]] gate own_gate() { return gate::from(port_.load(own_gate_) ^ zero_here()); }
  void look_at_own() {
    now_ = own_gate();
    is_known_ = !now_.few();
  }
  // Of gates that we were told are closed.
  void see_whether_few() {
    if (!is_told_ || !is_kept() || now_.what() != gate::state::closed) return;
    is_told_ = false;
    look_at_own();
    now_ = now_.as(gate::state::closed);  // ours may be unlisted
  }
  void write(gate says) {
    const rma::word bits = says.bits() ^ zero_at_home();
    if (is_here_)
      port_.store(where_.says, bits);
    else
      port_.put(where_.says, bits);
  }
  void say_closed() {
    write(now_.as(gate::state::closed));
    if (is_here_) {
      port_.fence();  // the look comes after it (C13)
      nodes_ = port_.load(where_.listed);
    } else {
      if (!rma::orders_posts(port_)) port_.flush(where_.listed.home);
      port_.get(where_.listed, nodes_);
      port_.flush(where_.listed.home);
    }
    is_known_ = true;
  }
  void look(bool is_there) {
    if (!is_there) {
      port_.get(where_.says, says_);
      port_.flush(where_.says.home);
    }
    now_ = gate::from(says_ ^ zero_at_home());
  }

  Port& port_;
  reader_cells where_;
  rma::cpu_cell own_gate_;
  node_set own_;
  node_set of_home_;
  bool is_here_;  // at our node: the home
  gate_listing<Port> listing_;
  bool is_posted_ = false;
  bool is_told_ = false;   // that gates are closed, or idle, and that is all we know
  bool is_known_ = false;  // what follows
  rma::word says_ = 0;     // as the home has it
  node_set nodes_ = 0;     // that are listed, but for the home's
  gate now_;
};

}  // namespace lockflight::lock
