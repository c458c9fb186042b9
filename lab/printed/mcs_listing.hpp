// mcs-listing: the MCS lock with which the ALock paper compares. It is for the checker and for
// simulated runs; d_mcs.hpp is the lock to use.
//
// Source: "ALock: Asymmetric Lock Primitive for RDMA Systems", sections 4 and 6. The paper names
// the lock and prints no algorithm of it. Its operations are reads, writes and compare-and-swaps,
// and section 5 says of ALock's queues, which are MCS queues, how they are entered and left. The
// authors' program has the same steps (rdma_mcs_lock.h at commit a394068, and AtomicSwap of its
// library).
//
// How it differs from d-mcs:
// - A descriptor is swapped onto the tail by a loop of compare-and-swaps. The first attempt expects
//   an empty queue, and each other one expects what the one before has seen.
// - A holder that leaves first tries to reset the tail by a compare-and-swap, and only then looks
//   for its successor.
// - It has no try_lock.
//
// Order: first come, first served, in the order in which participants replaced the tail.
// Fairness: once in the queue, a participant is not overtaken. Nothing bounds the attempts that it
// takes to get there.
//
// Cost in network operations; waiting is local:
// | acquire, free                 | 1 compare-swap                                            |
// | acquire, behind a predecessor | 2 compare-swaps (1 more for each lost race), 1 put        |
// | release, no successor         | 1 compare-swap                                            |
// | handoff                       | 1 compare-swap, 1 put                                     |
#pragma once

#include <cstdint>

#include "lockflight/lock/about.hpp"
#include "lockflight/lock/d_mcs.hpp"
#include "lockflight/rma/assert.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::lock {

template <rma::port Port>
class mcs_listing {
 public:
  static constexpr facts about{
      .name = "mcs-listing",
      .what = kind::mutex,
      .source =
          "MCS of ALock: Asymmetric Lock Primitive for RDMA Systems, sections 4 and 6, as "
          "described",
      .bytes_home = 8,
      .bytes_per_node = 0,
      .bytes_per_participant = 16,
      .as_printed = true,
  };
  using parameters = d_mcs_parameters;
  /// The same word as that of d-mcs.
  using cells = typename d_mcs<Port>::cells;

  mcs_listing(rma::participant<Port>& me, const cells& where, const parameters& = {})
      : me_(me), port_(me.port()), tail_(where.tail) {}

  void lock() {
    node_ = me_.take_queue_node();
    const rma::word pred = swap_tail(rma::to_word(node_.first));
    if (pred == rma::null_ref) return;
    // The predecessor cannot know us before we link to it, and then it sees WAIT set: a store is
    // visible before what is posted after it takes effect (C12).
    port_.store(node_[wait], 1);
    // Flushed: the predecessor may be waiting for this link.
    const rma::queue_node pred_node{rma::from_word<rma::plain_cell>(pred)};
    rma::put_now(port_, pred_node[next], rma::to_word(node_.first));
    port_.await(node_[wait], rma::equals(0));
  }

  void unlock() {
    const rma::word own = rma::to_word(node_.first);
    if (rma::compare_swap_now(port_, tail_, own, rma::null_ref) != own) {
      // A successor has written its link, or is about to.
      rma::ensure(me_.has_taken(node_), "only the holder releases");
      const rma::word succ = port_.await(node_[next], rma::differs_from(rma::null_ref));
      port_.store(node_[next], rma::null_ref);
      // Flushed, else the successor would wait until we flush something else.
      rma::put_now(port_, rma::queue_node{rma::from_word<rma::plain_cell>(succ)}[wait], 0);
    }
    me_.give_back(node_);
  }

 private:
  // The words of a queue node, the paper's descriptor. A free one is all zero (C25).
  static constexpr std::uint32_t next = 0;  // the successor's queue node, or null_ref
  static constexpr std::uint32_t wait = 1;  // 1 while we must wait

  /// The swap made of compare-and-swaps.
  [[nodiscard]] rma::word swap_tail(rma::word own) {
    rma::word expected = rma::null_ref;
    while (true) {
      const rma::word seen = rma::compare_swap_now(port_, tail_, expected, own);
      if (seen == expected) return seen;
      expected = seen;
    }
  }

  rma::participant<Port>& me_;
  Port& port_;
  rma::nic_cell tail_;
  rma::queue_node node_;
};

}  // namespace lockflight::lock
