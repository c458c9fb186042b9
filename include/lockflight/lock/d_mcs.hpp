// d-mcs: the MCS queue lock over one-sided operations. Each waiter waits on a cell of its own queue
// node.
//
// Source: "High-Performance Distributed RMA Locks", section 2.4, Listings 2 and 3, after
// Mellor-Crummey and Scott 1991. The listings' WAIT and STATUS are one word. Every access to the
// tail is nic class, from the home node as loopback.
//
// Invariants: NEXT is reset by the holder that has read a link from it. WAIT is set by the
// participant that has to wait and reset by its predecessor. A free queue node is therefore all
// zero (C25).
//
// Order: first come, first served, by the order of the swaps on TAIL.
// Fairness: once its swap has taken effect, a waiter is not overtaken.
//
// Cost in network operations; waiting is local:
// | acquire, free                 | 1 swap         |
// | acquire, behind a predecessor | 1 swap, 1 put  |
// | release, no successor         | 1 compare-swap |
// | handoff                       | 1 put          |
#pragma once

#include <array>
#include <cstdint>

#include "lockflight/lock/about.hpp"
#include "lockflight/rma/assert.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::lock {

struct d_mcs_parameters {
  [[nodiscard]] static constexpr std::array<parameter<d_mcs_parameters>, 0> all() { return {}; }
};

template <rma::port Port>
class d_mcs {
 public:
  static constexpr facts about{
      .name = "d-mcs",
      .what = kind::mutex,
      .source = "High-Performance Distributed RMA Locks, section 2.4",
      .bytes_home = 8,
      .bytes_per_node = 0,
      .bytes_per_participant = 16,
  };
  using parameters = d_mcs_parameters;

  /// This lock's words.
  struct cells {
    rma::nic_cell tail;  // at the home: the queue node of the last waiter or holder, or null_ref

    static cells place(rma::layout& in, const rma::topology&, const parameters&, rma::rank_t home) {
      return {in.take<rma::nic_cell>(1).at(home)};
    }
  };

  /// How often a waiter can be overtaken by later participants.
  [[nodiscard]] static constexpr std::int64_t most_overtaken(const rma::topology&,
                                                             const parameters&) {
    return 0;
  }

  d_mcs(rma::participant<Port>& me, const cells& where, const parameters& = {})
      : me_(me), port_(me.port()), tail_(where.tail) {}

  void lock() {
    node_ = me_.take_queue_node();
    const rma::word pred = rma::swap_now(port_, tail_, rma::to_word(node_.first));
    if (pred == rma::null_ref) return;  // the queue was empty: the lock is ours

    // The predecessor cannot know us before we link to it, and then it sees WAIT set: a store is
    // visible before what is posted after it takes effect (C12).
    port_.store(node_[wait], 1);
    // Flushed: the predecessor may be waiting for this link.
    const rma::queue_node pred_node{rma::from_word<rma::plain_cell>(pred)};
    rma::put_now(port_, pred_node[next], rma::to_word(node_.first));
    port_.await(node_[wait], rma::equals(0));
  }

  /// Takes the lock if the queue is empty. 1 compare-swap.
  [[nodiscard]] bool try_lock() {
    node_ = me_.take_queue_node();
    const rma::word pred =
        rma::compare_swap_now(port_, tail_, rma::null_ref, rma::to_word(node_.first));
    if (pred != rma::null_ref) me_.give_back(node_);
    return pred == rma::null_ref;
  }

  void unlock() {
    // The queue node is given back only when no participant can refer to it: after the compare-swap
    // took it off the queue, or after our successor, the only participant that knew it, has written
    // its link.
    if (port_.load(node_[next]) == rma::null_ref) {
      const rma::word me = rma::to_word(node_.first);
      if (rma::compare_swap_now(port_, tail_, me, rma::null_ref) == me) {
        me_.give_back(node_);
        return;
      }
      // A successor swapped itself in behind this node and is about to write its link.
      rma::ensure(me_.has_taken(node_), "only the holder releases");
      port_.await(node_[next], rma::differs_from(rma::null_ref));
    }
    const rma::queue_node succ{rma::from_word<rma::plain_cell>(port_.load(node_[next]))};
    port_.store(node_[next], rma::null_ref);
    // Handoff: one put. Flushed, else the successor would wait until we flush something else.
    rma::put_now(port_, succ[wait], 0);
    me_.give_back(node_);
  }

 private:
  // The words of a queue node (section 2.4.1).
  static constexpr std::uint32_t next = 0;  // NEXT: the successor's queue node, or null_ref
  static constexpr std::uint32_t wait = 1;  // WAIT: 1 while we must wait

  rma::participant<Port>& me_;
  Port& port_;
  rma::nic_cell tail_;
  rma::queue_node node_;
};

}  // namespace lockflight::lock
