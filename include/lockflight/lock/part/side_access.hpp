// The access of a participant of one of two sides, the home's node and the others, to the words of
// its side and of both sides: with the CPU, or through the network.
#pragma once

#include "lockflight/rma/participant.hpp"

namespace lockflight::lock {

template <rma::port Port>
class side_access {
 public:
  side_access(rma::participant<Port>& me, rma::cpu_cell local_tail, rma::nic_cell remote_tail)
      : port_(me.port()),
        local_(me.machine().same_node(local_tail.home, me.rank())),
        local_tail_(local_tail),
        remote_tail_(remote_tail) {}

  /// True if this rank is on the home's node.
  [[nodiscard]] bool is_local() const { return local_; }

  /// Writes to a cell of the home, or of a queue node of our side.
  void post(rma::plain_cell to, rma::word value) {
    if (local_)
      port_.store(to, value);
    else
      port_.put(to, value);
  }
  /// Our next operation comes after those that we have posted.
  void complete() {
    if (!local_) port_.flush();
  }
  /// Our next post to this rank comes after those that we have posted to it.
  void order(rma::rank_t at) {
    if (!local_ && !rma::orders_posts(port_)) port_.flush(at);
  }

  /// Writes, and returns what another cell of the same rank holds after that.
  [[nodiscard]] rma::word post_and_read(rma::plain_cell to, rma::word value, rma::plain_cell from) {
    post(to, value);
    if (local_) {
      port_.fence();  // the load comes after the store (C13)
      return port_.load(from);
    }
    order(from.home);
    return rma::get_now(port_, from);
  }

  // The tail of our side's queue.

  [[nodiscard]] rma::word swap_tail(rma::word own) {
    return local_ ? port_.cpu_swap(local_tail_, own) : rma::swap_now(port_, remote_tail_, own);
  }
  /// Also completes what is posted to the home.
  [[nodiscard]] rma::word compare_swap_tail(rma::word expected, rma::word desired) {
    return local_ ? port_.cpu_compare_swap(local_tail_, expected, desired)
                  : rma::compare_swap_now(port_, remote_tail_, expected, desired);
  }

 private:
  Port& port_;
  bool local_;
  rma::cpu_cell local_tail_;
  rma::nic_cell remote_tail_;
};

}  // namespace lockflight::lock
