// What a reader of flight-rw does that has parked on the first node of a branch, for the writer
// that closes or opens the gates. flight_rw/gate_tree.hpp has the protocol.
#pragma once

#include <cstdint>

#include "lockflight/lock/flight_rw/gate.hpp"
#include "lockflight/lock/flight_rw/gate_tree.hpp"
#include "lockflight/lock/flight_rw/layout.hpp"
#include "lockflight/lock/flight_rw/reader_scan.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::lock {

template <rma::port Port>
class deputy {
 public:
  deputy(rma::participant<Port>& me, const reader_cells& where)
      : me_(me),
        port_(me.port()),
        where_(where),
        first_(me.machine().node_of(me.rank())),
        past_(where.tree.past_nodes(where.tree.branch_of(first_))),
        errand_(where.errand_of(me.machine(), first_)),
        dismissal_(where.dismissal_of(me.machine(), first_)),
        looks_(me, where) {}

  /// For who is not counted among those whom the writer waits for, if the gate is closed. 1 put for
  /// each other node of the branch, and if it is closed 1 get for each of them at each look.
  void see_to(gate wished) {
    const auto before = errand::from(port_.load(errand_));
    if (before.under_way || before.wish >= wished.wish()) return;
    const errand mine{wished.wish(), true};
    // The look whether we are dismissed comes after it (C14): the writer that does that before our
    // look is obeyed, and one that does so later sees us (C7).
    if (port_.cpu_compare_swap(errand_, before.bits(), mine.bits()) != before.bits()) return;
    const bool is_done = !is_dismissed(wished) && carry_out(wished);
    port_.store(errand_, (is_done ? errand{wished.wish(), false} : before).bits());
  }

 private:
  // The wish may be an old one, since we have read the gate a while ago.
  [[nodiscard]] bool is_dismissed(gate wished) { return port_.load(dismissal_) >= wished.wish(); }

  // False if we are dismissed.
  [[nodiscard]] bool carry_out(gate wished) {
    bool posted = false;
    where_.for_each_gate(me_.machine(), first_ + 1, past_, [&](int, rma::cpu_cell of) {
      port_.put(of, wished.without_deputy().bits());
      posted = true;
    });
    if (posted) port_.flush();
    if (wished.what() != gate::state::closed) return true;
    looks_.list(first_, past_);
    looks_.start(wished, [](int) { return true; });
    for (rma::backoff b = where_.tree.between_looks();; port_.pause(b.next())) {
      if (looks_.post()) port_.flush();
      const bool elsewhere = looks_.gone_elsewhere();
      if (looks_.gone_here() && elsewhere) return true;
      if (is_dismissed(wished)) return false;
    }
  }

  rma::participant<Port>& me_;
  Port& port_;
  reader_cells where_;
  int first_;  // node of the branch, our own
  int past_;
  rma::cpu_cell errand_;
  rma::plain_cell dismissal_;
  reader_looks<Port> looks_;
};

}  // namespace lockflight::lock
