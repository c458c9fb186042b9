// The writers' part of flight-rw. The holder of flight closes the gates, scans the readers'
// counters, and opens the gates again or leaves them idle. flight_rw.hpp has the protocol.
//
// A directory at the lock's home says which nodes' gates are in use besides the home's own; the
// others are unlisted, and writers leave them alone. Where more than a third of all nodes are
// listed, all gates are opened (`all`), and the directory is not consulted until few nodes read
// again. Machines of more than 64 nodes have no directory: all gates are in use.
//
// Source: lockflight, after directories of caches' sharers that have few pointers and broadcast
// beyond ("An Evaluation of Directory Schemes for Cache Coherence", Agarwal et al., ISCA 1988).
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "lockflight/lock/flight_rw/gate.hpp"
#include "lockflight/lock/flight_rw/layout.hpp"
#include "lockflight/lock/flight_rw/reader_scan.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::lock {

template <rma::port Port>
class writer_side {
  using state = gate::state;

 public:
  writer_side(rma::participant<Port>& me, const reader_layout& where)
      : me_(me),
        port_(me.port()),
        where_(where),
        nodes_(me.machine().nodes()),
        own_gate_{rma::resolve(port_, where.gate_of(me.machine(), me.rank()).cell),
                  where.gate_of(me.machine(), me.rank()).zeroes},
        own_(me.machine().node_of(me.rank())),
        home_(me.machine().node_of(where.gates.home)),
        of_home_(where.has_directory ? set_of(home_) : 0),
        scan_(me, where) {}

  /// Begins with what the last holder passed. If that says nothing, the gates are open or idle;
  /// then 1 round trip, 1 get, if neither the home's gate nor one that shows the phase is here.
  void start(phase passed) {
    knows_ = knowledge::state;
    now_ = gate{}.as(passed.goes_on() ? state::closed : state::idle);
    if (passed == phase{}) learn_gate();
  }
  [[nodiscard]] state what() const { return now_.what(); }

  /// Waits until no reader is left behind the gates that this holder has closed (R2); false if time
  /// was over first. 1 round trip, 1 get for each other node, for each scan.
  template <class Until>
  [[nodiscard]] bool await_readers(Until until) {
    start_scan();
    for (rma::backoff b(200, 20'000); !scan_.is_gone_elsewhere(); port_.pause(b.next()))
      if (rma::is_over(port_, until)) return false;
    if (!scan_.await_here(until)) return false;
    knows_ = knowledge::readers;
    return true;
  }

  /// True if the scan has found no reader, on its way out or waiting; where all gates are in use,
  /// hardly any node with readers.
  [[nodiscard]] bool is_quiet() const {
    return scan_.seen() == 0 || (now_.has(gate::all) && is_little(scan_.seen()));
  }

  /// Ends the writers' phase: opens the gates, or leaves them idle if the phase was `quiet`, as the
  /// one before, and still is. Whether they are idle. As `open`; before it 1 get for each other
  /// node.
  [[nodiscard]] bool end_phase(rma::word writers, bool quiet) {
    learn_gate();
    learn_nodes();
    // A reader may have come since the gates were closed.
    if (quiet && (writers > 1 || now_.has(gate::quiet))) quiet = scan_once();
    const bool is_second = quiet && now_.has(gate::quiet);
    if (!is_second) return open_next_phase(now_.next_phase(quiet)), false;
    if (const node_set few = scan_.seen() & ~of_home_; few != 0) return open_few(few), false;
    return leave_idle(), true;
  }

  /// Opens the gates for a new phase, if they are not open. 1 round trip, 1 put for each node; at
  /// idle gates another one before it, with 1 put; and what is not known by then.
  void open() {
    if (now_.is(state::open)) return;
    learn_gate();
    const gate next = now_.next_phase(false);
    // At idle gates a reader lists its node and then reads the home's gate. So that one comes first
    // and is complete before the directory is read: the reader finds it open, or relies on us and
    // we find its node (R5).
    if (now_.is(state::idle) && uses_directory(now_)) put_home(next, false);
    learn_nodes();
    open_next_phase(next);
  }

  // ---- the edges of docs/gates.svg that the holder of flight takes ----

  /// open -> closed. 1 round trip, 1 put for each node whose gate is in use; before that, unless
  /// all are, 1 put and 1 get, in one round trip where posts are ordered, else in two.
  void close() {
    const gate closed = now_.as(state::closed);
    // The directory is read after the home's gate is closed (R4): a reader that lists its node too
    // late for us finds that gate closed.
    if (uses_directory(now_)) put_home(closed, rma::orders_posts(port_));
    learn_nodes();
    put_gates(closed, in_use_);
  }

  /// closed -> open, for the same epoch: this writer gives up. Readers that parked at the epoch
  /// before may not have left yet, and only two epochs are told apart.
  void reopen() { put_gates(now_.as(state::open).without(gate::quiet), in_use_); }

 private:
  // closed, idle, opening -> open, for the next epoch.
  void open_next_phase(gate next) {
    node_set listed = in_use_ & ~of_home_;
    if (uses_directory(now_)) {
      if (is_much(listed)) next = next.with(gate::all);
      // A node is taken off the directory only by a writer that has closed its gate and has seen no
      // reader behind it (R4). Others may have been listed meanwhile; their readers wait until the
      // home's gate is open.
      if (knows_ == knowledge::readers && !is_little(listed)) listed &= scan_.seen();
    }
    put_and_list(next, listed);
  }
  // closed -> open, for the next epoch, and from all gates back to those of few nodes.
  void open_few(node_set listed) {
    put_and_list(now_.next_phase(false).without(gate::all), listed);
  }
  // closed -> idle, with an empty directory.
  void leave_idle() { put_and_list(now_.as(state::idle).without(gate::all), 0); }
  // closed -> unlisted, of a node that is off the directory. Whether a put was posted.
  [[nodiscard]] bool unlist(int node) {
    return put_gate(node, now_.as(state::unlisted).without(gate::all));
  }

  // ---- what the holder knows of the gates ----

  // Each one includes those before it.
  enum class knowledge : std::uint8_t {
    state,    // the gates' state, as the last holder passed it
    word,     // all that the home's gate says
    nodes,    // whose gates are in use
    readers,  // where readers were, since this holder has closed the gates
  };

  void learn_gate() {
    if (knows_ >= knowledge::word) return;
    knows_ = knowledge::word;
    now_ = own_gate_.load(port_);
    if (own_ != home_ && where_.has_directory && !now_.shows_phase())
      now_ = where_.gate_of_node(me_.machine(), home_).get_now(port_);
    if (now_.needs_flight()) now_ = now_.as(state::idle);
  }
  void learn_nodes() {
    if (knows_ >= knowledge::nodes) return;
    knows_ = knowledge::nodes;
    in_use_ = uses_directory(now_) ? read_directory() | of_home_ : all_nodes;
  }
  [[nodiscard]] node_set read_directory() {
    if (own_ != home_) return rma::get_now(port_, where_.listed);
    port_.fence();  // our writes to the home's gate come before it (C13): R4
    return port_.load(where_.listed);
  }

  // True if gates that say this are in use on the home's node and listed ones only, not on all.
  [[nodiscard]] bool uses_directory(gate says) const {
    return where_.has_directory && !says.has(gate::all);
  }
  // True if the nodes of a set are so few that each is to be listed, or so many that to open all
  // gates costs less: nodes that are left out are listed anew, each by round trips to the home.
  [[nodiscard]] bool is_little(node_set of) const { return size(of) <= one_of_each(24); }
  [[nodiscard]] bool is_much(node_set of) const { return size(of) > one_of_each(3); }
  [[nodiscard]] int size(node_set of) const { return std::popcount(of & ~of_home_); }
  [[nodiscard]] int one_of_each(int n) const { return std::max(1, me_.machine().nodes() / n); }

  void start_scan() {
    // A reader that the counters do not show has yet to see the gate closed (R1): by our flush or
    // fence (C13) and its atomic (C14).
    port_.fence();
    scan_.start(now_.epoch(), in_use_);
  }
  // Scans once, and returns is_quiet().
  [[nodiscard]] bool scan_once() {
    start_scan();
    static_cast<void>(scan_.is_gone_here());
    static_cast<void>(scan_.is_gone_elsewhere());
    return is_quiet();
  }

  // Sets the gates of these nodes and the home's to `to`, or, if `to` says so, the gates of all.
  void put_and_list(gate to, node_set listed) {
    if (!uses_directory(to)) return put_gates(to, all_nodes);
    // While all gates are in use the holder does not know what the directory lists.
    const node_set was = uses_directory(now_) ? in_use_ & ~of_home_ : read_directory();
    if (listed != was) {
      port_.add(where_.listed, listed - was);  // a sum: readers list other nodes meanwhile
      port_.flush(where_.listed.home);         // before a reader finds its gate unlisted
    }
    put_gates(to, listed | of_home_);
  }
  // The gates of these nodes say `to` then; others that were in use are unlisted. Complete at the
  // return: nobody waits for what is not flushed.
  void put_gates(gate to, node_set nodes) {
    bool posted = false;
    for (int node = 0; node < nodes_; ++node)
      if (has(nodes, node))
        posted = put_gate(node, to) || posted;
      else if (has(in_use_, node))
        posted = unlist(node) || posted;
    if (posted) port_.flush();
    now_ = to;
    in_use_ = nodes;
    // Readers list their nodes and enter at gates that are not closed: what was known is old.
    if (!to.is(state::closed)) knows_ = knowledge::word;
  }
  // The home's gate before the others. Flushed, unless posts are ordered and a get comes next.
  void put_home(gate to, bool is_ordered) {
    if (put_gate(home_, to) && !is_ordered) port_.flush(where_.gates.home);
    now_ = to;
  }
  // True if a put was posted, for the caller to flush.
  [[nodiscard]] bool put_gate(int node, gate to) {
    if (node == home_ && to == now_) return false;  // put_home has
    if (node == own_) return own_gate_.store(port_, to), false;
    where_.gate_of_node(me_.machine(), node).put(port_, to);
    return true;
  }

  rma::participant<Port>& me_;
  Port& port_;
  reader_layout where_;
  int nodes_;
  gate_cell<rma::resolved<Port, rma::cpu_cell>> own_gate_;
  int own_;   // our node
  int home_;  // the home's
  node_set of_home_;
  reader_scan<Port> scan_;
  gate now_;  // the value of the home's gate; if only the state is known, that
  knowledge knows_ = knowledge::state;
  node_set in_use_ = 0;  // the nodes whose gates writers close, if they are known
};

}  // namespace lockflight::lock
