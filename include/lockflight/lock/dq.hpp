// dq: a queue lock whose clients link themselves, and enter the queue by compare-and-swap on its
// tail.
//
// Source: "Distributed Queue-based Locking using Advanced Network Features" (DLM paper), sections
// 4.2 and 4.3, called Distributed there.
//
// Difference from the text: a client joins by making a handle and leaves by dropping it, at any
// time and without a message. A reference is a rank and an index that every rank can use (C20), so
// there are no keys to register at the server, to cache, or to find stale. A client that dies in
// the queue ends the run (C36).
//
// Invariants: part/client_queue.hpp.
//
// Order: first come, first served, by the order in which clients replaced the tail.
// Fairness: once in the queue, a client is not overtaken. Replacing the tail takes any number of
// attempts (section 4.4), so a client that is always late starves; dq-fair corrects that.
//
// Cost in network operations (Table 3); waiting is local:
// | acquire, free                 | 1 compare-swap                                             |
// | acquire, behind a predecessor | 2 compare-swaps (1 more a lost race), 1 put                |
// | release, no successor         | 1 compare-swap                                             |
// | handoff                       | 1 put, and 1 compare-swap if the successor has no link yet |
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
    rma::nic_cell tail;  // at the home: the last client's queue node, or null_ref

    static cells place(rma::layout& in, const rma::topology&, const parameters&, rma::rank_t home) {
      return {in.take<rma::nic_cell>(1).at(home)};
    }
  };

  dq(rma::participant<Port>& me, const cells& where, const parameters& = {})
      : port_(me.port()), tail_(where.tail), queue_(me) {}

  void lock() {
    queue_.take_queue_node();
    const rma::word me = rma::to_word(queue_.node());
    // A failed attempt returns the tail as it is now: our most likely predecessor.
    rma::word pred = rma::null_ref;
    while (true) {
      const rma::word tail = rma::compare_swap_now(port_, tail_, pred, me);
      if (tail == pred) break;
      pred = tail;
      port_.pause(0);
    }
    if (pred != rma::null_ref) queue_.wait_behind(rma::from_word<rma::plain_cell>(pred));
  }

  /// Takes the lock if the queue is empty. 1 compare-swap.
  [[nodiscard]] bool try_lock() {
    queue_.take_queue_node();
    const rma::word me = rma::to_word(queue_.node());
    if (rma::compare_swap_now(port_, tail_, rma::null_ref, me) == rma::null_ref) return true;
    queue_.give_back_queue_node();
    return false;
  }

  void unlock() {
    if (!queue_.has_successor()) {
      const rma::word me = rma::to_word(queue_.node());
      if (rma::compare_swap_now(port_, tail_, me, rma::null_ref) == me)
        return queue_.give_back_queue_node();
      // The transient state (section 4.3.1): we are not the tail any more, so we have a successor
      // that is about to write its link. The tail may be another client.
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
