// What the holder of flight does with flight-rw's gates: it closes them, scans the readers'
// counters, and opens the gates again or leaves them idle. flight_rw.hpp has the protocol.
//
// A directory at the lock's home says which nodes' gates are in use besides the home's own; the
// others are unlisted, and writers leave them alone. After a writers' phase nodes where no reader
// was seen are taken off it. Where more than a third of all nodes are listed, all gates are opened
// (`all`), and the directory is not consulted until few nodes read again. Machines of more than 64
// nodes have no directory: all gates are in use.
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
        own_gate_(where.gate_of(me.machine(), me.rank())),
        is_home_(me.machine().same_node(where.gates.home, me.rank())),
        of_home_(where.has_directory ? set_of(me.machine().node_of(where.gates.home)) : 0),
        scan_(me, where) {}

  /// For the holder of flight, which knows this of the gates, or nothing; the other calls are for
  /// it too. 1 round trip, 1 get, if it knows nothing and neither gate on its node is in use.
  void start(state known) {
    now_ = gate{}.as(known);
    home_says_ = gate{}.as(state::claimed);  // which it never is
    knows_gate_ = knows_set_ = has_closed_ = false;
    if (known == state::open) learn_gate();
  }
  [[nodiscard]] state what() const { return now_.what(); }

  /// Closes the gates. 1 round trip, 1 put for each node whose gate is in use; before that, unless
  /// all are, 1 put and 1 get, in one round trip where posts are ordered, else in two.
  void close() {
    const gate closed = now_.as(state::closed);
    if (has_few()) {
      write_home(closed);
      // The set is read after it (R4).
      if (!is_home_ && !rma::orders_posts(port_)) port_.flush(where_.gates.home);
      knows_set_ = false;
      learn_set();
    }
    put_gates(closed, listed_);
    has_closed_ = true;
  }
  /// The same for readers of the same epoch: the writer has given up. Those that parked before it
  /// may not have left, and two epochs are told apart.
  void reopen() { put_gates(now_.as(state::open).without(gate::quiet), listed_); }

  /// Until no reader is left behind the closed gates (R2); false if time was over first. 1
  /// round trip, 1 get for each other node, for each scan.
  template <class Until>
  [[nodiscard]] bool await_readers(Until until) {
    start_scan();
    for (rma::backoff b(200, 20'000); !scan_.is_gone_elsewhere(); port_.pause(b.next()))
      if (rma::is_over(port_, until)) return false;
    return scan_.await_here(until);
  }

  /// Whether the scan has found no reader, on its way out or waiting; where all gates are in use,
  /// hardly any node with readers.
  [[nodiscard]] bool is_quiet() const {
    return scan_.seen() == 0 || (now_.has(gate::all) && is_little(scan_.seen()));
  }

  /// Ends the writers' phase: opens the gates, or leaves them idle if it was `quiet`, as the one
  /// before, and still is. Whether they are idle. As `open`; before it 1 get for each other node.
  [[nodiscard]] bool end_phase(rma::word writers, bool quiet) {
    learn_gate();
    learn_set();
    // A reader may have come since the gates were closed.
    if (quiet && (writers > 1 || now_.has(gate::quiet))) {
      start_scan();
      static_cast<void>(scan_.is_gone_here());
      static_cast<void>(scan_.is_gone_elsewhere());
      quiet = is_quiet();
    }
    const gate next = now_.next_phase().with(gate::quiet, quiet ? 1 : 0);
    if (!quiet || !now_.has(gate::quiet)) {
      open_for(next);
      return false;
    }
    if (const node_set seen = where_.has_directory ? scan_.seen() & ~of_home_ : 0; seen != 0) {
      put_gates(next.without(gate::quiet).without(gate::all), seen);
      return false;
    }
    const gate idle = now_.as(state::idle);
    put_gates(where_.has_directory ? idle.without(gate::all) : idle, 0);
    return true;
  }

  /// Opens gates for a new phase, if they are not open. 1 round trip, 1 put for each node, and if
  /// the directory is not known one or two before.
  void open() {
    if (now_.is(state::open)) return;
    const bool were_idle = now_.is(state::idle);
    learn_gate();
    const gate next = now_.next_phase().without(gate::quiet);
    if (were_idle && has_few()) {
      // Readers that have found the home's gate idle rely on us, others see it open (R5).
      write_home(next);
      if (!is_home_) port_.flush(where_.gates.home);
    }
    learn_set();
    open_for(next);
  }

 private:
  [[nodiscard]] int nodes() const { return me_.machine().nodes(); }
  // Nodes that few enough are to be listed one by one.
  [[nodiscard]] bool is_little(node_set of) const {
    constexpr int nodes_for_one = 24;
    return where_.has_directory &&
           std::popcount(of & ~of_home_) <= std::max(1, nodes() / nodes_for_one);
  }
  [[nodiscard]] bool is_much(node_set of) const {
    // Nodes that are taken off are listed anew, each by round trips to the home; if there are few
    // of them to open all gates costs less.
    constexpr int part = 3;
    return std::popcount(of) > std::max(1, nodes() / part);
  }
  [[nodiscard]] bool has_few() const { return where_.has_directory && !now_.has(gate::all); }
  [[nodiscard]] bool is_used(node_set of, int node) const {
    return !has_few() || lock::has(of | of_home_, node);
  }

  // What the home's gate says. Any gate that is open or closed says the same (R6).
  void learn_gate() {
    if (knows_gate_) return;
    knows_gate_ = true;
    const gate own = gate::from(port_.load(own_gate_) ^ where_.zero_of_gate(own_gate_.home));
    if (is_home_ || !where_.has_directory || own.is(state::open) || own.is(state::closed))
      now_ = own;
    else
      now_ = gate::from(rma::get_now(port_, where_.gates));
    if (now_.is_idle()) now_ = now_.as(state::idle);
  }
  void learn_set() {
    if (knows_set_ || !has_few()) return;
    knows_set_ = true;
    if (is_home_) {
      port_.fence();  // what we have written to the home's gate comes before it (C13): R4
      listed_ = port_.load(where_.listed);
    } else {
      listed_ = rma::get_now(port_, where_.listed);
    }
  }

  void start_scan() {
    // A reader that the counters do not show has yet to see the gate closed (R1): by our flush or
    // fence (C13) and its atomic (C14).
    port_.fence();
    scan_.start(now_.epoch(), [this](int node) { return is_used(listed_, node); });
  }

  void open_for(gate next) {
    if (has_few() && is_much(listed_)) next = next.with(gate::all);
    // Only a writer that has closed these gates, and has seen no active reader behind them, takes
    // nodes off (R4). Others may have listed theirs meanwhile, and wait until the home's is open.
    const bool drops = has_few() && has_closed_ && !is_little(listed_);
    put_gates(next, drops ? listed_ & scan_.seen() : listed_);
  }

  // The gates of these nodes and the home's say `to` then, or, if it says so, those of all; others
  // that were in use are unlisted. Complete at the return: nobody waits for what is not flushed.
  void put_gates(gate to, node_set keep) {
    const gate unlisted = now_.as(state::unlisted).without(gate::all);
    const node_set was_used = has_few() ? listed_ | of_home_ : all_nodes;
    const bool had_few = has_few();
    now_ = to;
    if (has_few()) list_only(keep, had_few);
    bool posted = false;
    for (int node = 0; node < nodes(); ++node)
      if (is_used(listed_, node))
        posted = put_gate(node, to) || posted;
      else if (lock::has(was_used, node))
        posted = put_gate(node, unlisted) || posted;
    if (posted) port_.flush();
  }
  // Only these nodes are listed then. By a sum, since readers list others meanwhile; none whose
  // gate we have closed.
  void list_only(node_set keep, bool had_few) {
    // While all gates were in use the directory was not kept.
    if (!had_few) knows_set_ = false, learn_set();
    if (keep != listed_) {
      port_.add(where_.listed, keep - listed_);
      port_.flush(where_.listed.home);  // before a reader finds its gate unlisted
    }
    listed_ = keep;
  }

  // Whether it has posted a put, to be flushed.
  [[nodiscard]] bool put_gate(int node, gate to) {
    const rma::cpu_cell of = where_.gate_of_node(me_.machine(), node);
    if (of == where_.gates && to == home_says_) return false;
    if (of == where_.gates) home_says_ = to;
    const rma::word bits = to.bits() ^ where_.zero_of_gate(of.home);
    if (of == own_gate_)
      port_.store(of, bits);
    else
      port_.put(of, bits);
    return of != own_gate_;
  }
  // Before the other gates.
  void write_home(gate to) {
    static_cast<void>(put_gate(me_.machine().node_of(where_.gates.home), to));
  }

  rma::participant<Port>& me_;
  Port& port_;
  reader_layout where_;
  rma::cpu_cell own_gate_;
  bool is_home_;  // our node is the home's
  node_set of_home_;
  reader_scan<Port> scan_;
  gate now_;                 // what the gates say, as far as we know: the state, or all of it
  gate home_says_;           // the home's, once we have written it
  bool knows_gate_ = false;  // all of it
  bool knows_set_ = false;   // listed_, unless all gates are in use
  bool has_closed_ = false;  // and scanned the counters, since we have flight
  node_set listed_ = 0;
};

}  // namespace lockflight::lock
