// The queue of clients that dq and dq-fair chain among themselves: who stands behind whom, and the
// alerts between neighbours. The lock's home knows only the tail.
//
// Source: "Distributed Queue-based Locking using Advanced Network Features" (DLM paper), section
// 3.2 and Figures 2 and 3. An alert is a put where the paper has an RDMA write with immediate.
//
// Network operations: joining behind somebody 1 put, passing on 1 put. Waiting is local.
#pragma once

#include <cstdint>

#include "lockflight/rma/assert.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::lock {

/// One participant's place in a lock's queue.
template <rma::port Port>
class client_queue {
 public:
  explicit client_queue(rma::participant<Port>& me) : me_(me), port_(me.port()) {}

  void take_place() { line_ = me_.take_line(); }

  /// Only when nobody refers to our place any more: nobody stood behind it, or whoever did has
  /// written its link and been told.
  void give_up_place() { me_.give_back(line_); }

  /// Our place: what whoever comes next must know of us.
  [[nodiscard]] rma::plain_cell place() const { return line_.first; }

  /// Makes us known to whoever holds the place `pred`, and waits until it passes the lock on. 1
  /// put.
  void wait_behind(rma::plain_cell pred) {
    // The predecessor cannot know us before we link to it, and sees WAIT as we leave it here: a
    // store is visible before what is posted after it takes effect (C12).
    port_.store(line_[wait], 1);
    // Flushed: the predecessor may be waiting for this link.
    rma::put_now(port_, rma::line{pred}[next], rma::to_word(line_.first));
    port_.await(line_[wait], rma::equals(0));
  }

  /// Whether a successor has made itself known. One that has not may still exist.
  [[nodiscard]] bool has_successor() { return port_.load(line_[next]) != rma::null_ref; }

  void await_successor() {
    rma::ensure(me_.has_taken(line_), "only the holder releases");
    port_.await(line_[next], rma::differs_from(rma::null_ref));
  }

  /// Passes the lock on to the successor, which has made itself known. 1 put.
  void pass_on() {
    const rma::line succ{rma::from_word<rma::plain_cell>(port_.load(line_[next]))};
    port_.store(line_[next], rma::null_ref);
    // Flushed, else the successor may wait for as long as we flush nothing else.
    rma::put_now(port_, succ[wait], 0);
    give_up_place();
  }

 private:
  // The words of a line; a free line is all zero (C25). NEXT is reset by whoever read a link from
  // it, WAIT is set by whoever has to wait and reset by its predecessor.
  static constexpr std::uint32_t next = 0;  // the place behind ours, or null_ref
  static constexpr std::uint32_t wait = 1;  // 1 while we must wait

  rma::participant<Port>& me_;
  Port& port_;
  rma::line line_;
};

}  // namespace lockflight::lock
