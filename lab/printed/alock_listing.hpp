// alock-listing: the asymmetric lock as its paper describes it. It is for the checker and for
// simulated runs; alock.hpp is the lock to use.
//
// Source: "ALock: Asymmetric Lock Primitive for RDMA Systems", section 5, Algorithms 1 to 4. The
// algorithms themselves are lost in the text of the paper that this project has; the sentences of
// sections 5, 5.1 and 5.2 and the example of figure 2 say what is here. The local cohort does the
// same as the remote one, with operations of the CPU.
//
// How it differs from alock:
// - A descriptor is swapped onto the tail by a loop of compare-and-swaps, because the paper has
//   reads, writes and compare-and-swaps only. The first attempt expects an empty queue, and each
//   other one "uses the learned value" of the one before.
// - The head of a cohort makes its cohort the victim before it looks whether there is a rival
//   (pLock and pReacquire).
// - A holder that leaves first tries to reset the tail by a compare-and-swap, and only then looks
//   for its successor.
// - The head polls the other cohort without a pause: first the tail and, if that is set, the
//   victim.
// - It has no try_lock.
//
// Differences from the text:
// - The lock is passed to the successor in the queue. Section 5.1 says "to the location returned by
//   the attempted rCAS", which is the last in the queue; with two waiters the one between would
//   wait for ever.
// - The cell `budget` holds 0 for "wait" (the paper: -1) and budget + 1 for the rest, so that a
//   fresh queue node waits.
// The authors' program reads the whole line of the lock with each poll, sets the victim by a loop
// of compare-and-swaps, and looks for a successor first in the local cohort.
//
// Order: first come, first served inside a cohort, in the order of the swaps.
// Fairness: as alock for a participant that is in a queue. Nothing bounds the loop by which it gets
// there: its compare-and-swap fails for ever if other participants of its cohort come and go in
// between. The paper calls the lock starvation-free.
//
// Cost in network operations from other nodes; none on the home's node. Waiting for a predecessor
// is local:
// | acquire, free                     | 1 compare-swap, 1 put, 1 get                              |
// | acquire, behind a predecessor     | 2 compare-swaps or more, 1 put                            |
// | acquire, against the other cohort | 1 compare-swap, 1 put, and 2 gets a poll, without a pause |
// | release                           | 1 compare-swap                                            |
// | handoff                           | 1 compare-swap, 1 put                                     |
// | every `remote_budget` handoffs    | 1 put, 1 get besides, or more if the home's node waits    |
#pragma once

#include <cstdint>

#include "lockflight/lock/about.hpp"
#include "lockflight/lock/alock.hpp"
#include "lockflight/rma/assert.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::lock {

template <rma::port Port>
class alock_listing {
 public:
  static constexpr facts about{
      .name = "alock-listing",
      .what = kind::mutex,
      .source = "ALock: Asymmetric Lock Primitive for RDMA Systems, section 5, as printed",
      .bytes_home = 24,
      .bytes_per_node = 0,
      .bytes_per_participant = 16,
      .as_printed = true,
  };
  using parameters = alock_parameters;
  /// The same words as those of alock.
  using cells = typename alock<Port>::cells;

  alock_listing(rma::participant<Port>& me, const cells& where, const parameters& set = {})
      : me_(me),
        port_(me.port()),
        cells_(where),
        local_(me.machine().same_node(where.local_tail.home, me.rank())),
        whole_budget_(static_cast<rma::word>(local_ ? set.local_budget : set.remote_budget)) {}

  // Algorithm 2.
  void lock() {
    if (!q_lock()) compete();
  }
  void unlock() { q_unlock(); }

 private:
  // The words of a queue node, the paper's descriptor. A free one is all zero (C25).
  static constexpr std::uint32_t next = 0;    // the successor's queue node, or null_ref
  static constexpr std::uint32_t budget = 1;  // `waits`, or the rest of the budget + `passed`
  static constexpr rma::word waits = 0;
  static constexpr rma::word passed = 1;

  // Values of `victim`. Zeroed memory names no cohort.
  static constexpr rma::word local_cohort = 1;
  static constexpr rma::word remote_cohort = 2;

  /// Algorithm 3, qLock: true if the lock was passed to us.
  [[nodiscard]] bool q_lock() {
    node_ = me_.take_queue_node();
    const rma::word pred = swap_tail(rma::to_word(node_.first));
    if (pred == rma::null_ref) {
      budget_ = whole_budget_;
      return false;
    }
    // The predecessor must know our queue node.
    write(rma::queue_node{rma::from_word<rma::plain_cell>(pred)}[next], rma::to_word(node_.first));
    budget_ = port_.await(node_[budget], rma::differs_from(waits)) - passed;
    port_.store(node_[budget], waits);
    if (budget_ == 0) {
      compete();  // pReacquire
      budget_ = whole_budget_;
    }
    return true;
  }

  /// Algorithm 3, qUnlock.
  void q_unlock() {
    rma::ensure(budget_ > 0, "the holder's own acquire is in the budget");
    // This also clears our cohort's flag: it is the release to the other cohort.
    const rma::word own = rma::to_word(node_.first);
    if (compare_swap_tail(own, rma::null_ref) != own) {
      // A successor has written its link, or is about to.
      rma::ensure(me_.has_taken(node_), "only the holder releases");
      const rma::word succ = port_.await(node_[next], rma::differs_from(rma::null_ref));
      port_.store(node_[next], rma::null_ref);
      write(rma::queue_node{rma::from_word<rma::plain_cell>(succ)}[budget], budget_ - 1 + passed);
    }
    me_.give_back(node_);
  }

  /// Algorithm 4, pLock and pReacquire: our tail is set, so the other cohort sees our interest.
  void compete() {
    if (local_) {
      port_.store(cells_.victim, local_cohort);
      port_.fence();  // the reads below come after it (C13)
    } else {
      rma::put_now(port_, cells_.victim, remote_cohort);  // flushed: reads come after it
    }
    for (rma::backoff at_once = rma::backoff::none(); other_waits_or_holds() && we_are_victim();)
      port_.pause(at_once.next());
  }

  [[nodiscard]] bool other_waits_or_holds() {
    const rma::word tail =
        local_ ? port_.load(cells_.remote_tail) : rma::get_now(port_, cells_.local_tail);
    return tail != rma::null_ref;
  }
  [[nodiscard]] bool we_are_victim() {
    return local_ ? port_.load(cells_.victim) == local_cohort
                  : rma::get_now(port_, cells_.victim) == remote_cohort;
  }

  /// The swap made of compare-and-swaps: each attempt expects what the one before has seen.
  [[nodiscard]] rma::word swap_tail(rma::word own) {
    rma::word expected = rma::null_ref;
    while (true) {
      const rma::word seen = compare_swap_tail(expected, own);
      if (seen == expected) return seen;
      expected = seen;
    }
  }
  [[nodiscard]] rma::word compare_swap_tail(rma::word expected, rma::word desired) {
    return local_ ? port_.cpu_compare_swap(cells_.local_tail, expected, desired)
                  : rma::compare_swap_now(port_, cells_.remote_tail, expected, desired);
  }
  // Flushed, else a waiter would wait until we flush something else.
  void write(rma::plain_cell to, rma::word value) {
    if (local_)
      port_.store(to, value);
    else
      rma::put_now(port_, to, value);
  }

  rma::participant<Port>& me_;
  Port& port_;
  cells cells_;
  bool local_;              // which cohort we are in
  rma::word whole_budget_;  // of our cohort
  rma::word budget_ = 0;    // acquires that the cohort has left, this one included
  rma::queue_node node_;
};

}  // namespace lockflight::lock
