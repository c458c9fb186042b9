// dq: a FIFO queue that its clients chain among themselves, entered by compare-and-swap on the
// tail.
//
// Source: "Distributed Queue-based Locking using Advanced Network Features" (DLM paper), sections
// 4.2 and 4.3, called Distributed there.
//
// Two things of the paper are the fabric's here. A client joins by making a handle and leaves by
// dropping it, at any time and without a word to the others: a reference is a rank and an index
// that every rank can use (C20), so there are no keys to register at the server, to cache, or to
// find stale. And a client that dies in the queue ends the run (C36).
//
// Order: first come, first served, by the order in which clients replaced the tail.
// Fairness: once in the queue, overtaken by nobody. Replacing the tail takes any number of attempts
// (section 4.4): a client that is always late starves. dq-fair mends that.
// Network operations: uncontended 1 compare-swap to acquire and 1 to release (Table 3); behind
// somebody 2 compare-swaps, one more whenever another client is faster, and 1 put; handoff 1 put,
// and 1 compare-swap before it if the successor has not made itself known. Waiting is local.
#pragma once

#include <array>
#include <cstdint>

#include "lockflight/lock/about.hpp"
#include "lockflight/lock/part/client_queue.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::lock {

struct dq_parameters {
  [[nodiscard]] static constexpr std::array<parameter<dq_parameters>, 0> all() { return {}; }
};

template <rma::port Port>
class dq {
 public:
  static constexpr facts about{
      .name = "dq",
      .what = kind::mutex,
      .source = "Distributed: Distributed Queue-based Locking, sections 4.2 and 4.3",
      .bytes_home = 8,
      .bytes_per_node = 0,
      .bytes_per_participant = 16,
  };
  using parameters = dq_parameters;

  /// This lock's words.
  struct cells {
    rma::nic_cell tail;  // at the home: the last client's place in the queue, or null_ref

    static cells place(rma::layout& in, const rma::topology&, const parameters&, rma::rank_t home) {
      return {in.take<rma::nic_cell>(1).at(home)};
    }
  };

  dq(rma::participant<Port>& me, const cells& where, const parameters& = {})
      : port_(me.port()), tail_(where.tail), queue_(me) {}

  void lock() {
    queue_.take_place();
    const rma::word me = rma::to_word(queue_.place());
    // Each attempt that fails tells who is the tail now: our most likely predecessor.
    rma::word pred = rma::null_ref;
    while (true) {
      const rma::word tail = rma::compare_swap_now(port_, tail_, pred, me);
      if (tail == pred) break;
      pred = tail;
      port_.pause(0);
    }
    if (pred != rma::null_ref) queue_.wait_behind(rma::from_word<rma::plain_cell>(pred));
  }

  /// Takes the lock if nobody is in the queue. 1 compare-swap.
  [[nodiscard]] bool try_lock() {
    queue_.take_place();
    const rma::word me = rma::to_word(queue_.place());
    if (rma::compare_swap_now(port_, tail_, rma::null_ref, me) == rma::null_ref) return true;
    queue_.give_up_place();
    return false;
  }

  void unlock() {
    if (!queue_.has_successor()) {
      const rma::word me = rma::to_word(queue_.place());
      if (rma::compare_swap_now(port_, tail_, me, rma::null_ref) == me)
        return queue_.give_up_place();
      // The transient state (section 4.3.1): we are not the tail any more, so somebody stands
      // behind us and is about to say who. The tail itself may be another one.
      queue_.await_successor();
    }
    queue_.pass_on();
  }

 private:
  Port& port_;
  rma::nic_cell tail_;
  client_queue<Port> queue_;
};

}  // namespace lockflight::lock
