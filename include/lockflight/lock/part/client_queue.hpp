// The queue of clients that dq and dq-fair link among themselves: each client knows its successor,
// and neighbours alert each other. The lock's home knows only the tail.
//
// Source: "Distributed Queue-based Locking using Advanced Network Features" (DLM paper), section
// 3.2 and Figures 2 and 3. An alert is a put where the paper has an RDMA write with immediate.
//
// Invariants: NEXT is reset by the client that has read a link from it. WAIT is set by the client
// that has to wait and reset by its predecessor. A free queue node is therefore all zero (C25).
//
// Cost in network operations; waiting is local:
// | enter behind a predecessor | 1 put |
// | handoff                    | 1 put |
#pragma once

#include <cstdint>

#include "lockflight/rma/assert.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::lock {

/// A participant's queue node in a lock's queue.
template <rma::port Port>
class client_queue {
 public:
  explicit client_queue(rma::participant<Port>& me) : me_(me), port_(me.port()) {}

  void take_queue_node() { node_ = me_.take_queue_node(); }

  /// Only when no client refers to our queue node any more: we have no successor, or the successor
  /// has written its link and the lock was passed to it.
  void give_back_queue_node() { me_.give_back(node_); }

  /// Our queue node: the next client must know it.
  [[nodiscard]] rma::plain_cell node() const { return node_.first; }

  /// Links us to the queue node `pred` and waits until its owner passes the lock on. 1 put.
  void wait_behind(rma::plain_cell pred) {
    // The predecessor cannot know us before we link to it, and then it sees WAIT set: a store is
    // visible before what is posted after it takes effect (C12).
    port_.store(node_[wait], 1);
    // Flushed: the predecessor may be waiting for this link.
    rma::put_now(port_, rma::queue_node{pred}[next], rma::to_word(node_.first));
    port_.await(node_[wait], rma::equals(0));
  }

  /// True if a successor has written its link. A successor that has not may exist all the same.
  [[nodiscard]] bool has_successor() { return port_.load(node_[next]) != rma::null_ref; }

  void await_successor() {
    rma::ensure(me_.has_taken(node_), "only the holder releases");
    port_.await(node_[next], rma::differs_from(rma::null_ref));
  }

  /// Passes the lock on to the successor, which has written its link. 1 put.
  void pass_on() {
    const rma::queue_node succ{rma::from_word<rma::plain_cell>(port_.load(node_[next]))};
    port_.store(node_[next], rma::null_ref);
    // Flushed, else the successor would wait until we flush something else.
    rma::put_now(port_, succ[wait], 0);
    give_back_queue_node();
  }

 private:
  // The words of a queue node.
  static constexpr std::uint32_t next = 0;  // the successor's queue node, or null_ref
  static constexpr std::uint32_t wait = 1;  // 1 while we must wait

  rma::participant<Port>& me_;
  Port& port_;
  rma::queue_node node_;
};

}  // namespace lockflight::lock
