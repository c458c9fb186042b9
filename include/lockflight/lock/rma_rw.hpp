// rma-rw: the topology-aware reader-writer lock. Readers count themselves in distributed counters
// (DC); writers climb a tree of queues (DT) and take the counters from the readers at its root.
//
// Source: "High-Performance Distributed RMA Locks", section 3, Listings 4 to 10, corrected. Each
// correction is marked at its site:
// M1  A writer lets readers in until T_R, which is how we read sections 3.2.3 and 3.4, and then
//     waits for the readers that are in, as section 4.1 says. (Listing 6 does neither: it takes the
//     counters at once and enters.)
// M2  A reader that resets its counter subtracts the departures, never a WRITE flag. (Listing 6
//     also subtracts the flag, even that of a writer that came in between.)
// M3  A reader that waits at T_R reads the writers' queue again. (Listing 9 waits for a reset that
//     a writer on its way out of the queue has already done.)
// M4  A reader resets DEPART first, then ARRIVE, and a writer reads them the other way round. So it
//     may see too many readers in, never too few.
// M5  Level 1 passes the lock at most T_L,1 times, so that the product of all T_L,i is T_W, as
//     section 3.2.3 defines it. (Listing 8 allows T_W handoffs at level 1 alone.)
// M6  A reader that resets its counter takes DEPART with one swap. (Listing 6 reads it and then
//     subtracts, and two readers can subtract the same departures: a ticket that is given back late
//     lets a second reader draw T_R while the first still resets.)
// M7  try_lock_shared, which the paper does not have, reads the counter before it takes a ticket.
//     To a writer a ticket that is about to be given back looks like a reader that is in, so
//     repeated attempts would delay the writer for ever.
//
// Faster than the text, where it allows this: a writer posts its operations on all counters and
// flushes once; a reader that resets its counter enters with the ticket that it has; a waiter for a
// counter of its own node waits locally.
//
// Order: writers as rma-mcs; readers none among themselves.
// Fairness: a writer waits for at most T_R readers at each counter, and in the queues as in
// rma-mcs. Readers wait for at most T_W writers in a row. But a waiting reader holds no ticket, so
// a reader that always reads the counter too late can be overtaken for ever (lab/models/rma_rw.pml
// shows it). Section 4.3 overlooks that.
//
// Cost in network operations, C counters, N levels:
// | shared lock, its unlock  | 1 fetch-add, 1 add                                  |
// | exclusive lock, free     | N swaps, 3 C gets and C fetch-adds in 3 round trips |
// | its unlock, no successor | C adds, N compare-swaps                             |
// | handoff between writers  | 1 put                                               |
#pragma once

#include <array>
#include <cstdint>

#include "lockflight/lock/about.hpp"
#include "lockflight/lock/part/distributed_counter.hpp"
#include "lockflight/lock/part/queue_tree.hpp"

namespace lockflight::lock {

struct rma_rw_parameters {
  std::int64_t t_dc = 0;
  std::int64_t t_r = 1'000;
  locality_thresholds t_l{16, 16, 16, 16};

  [[nodiscard]] static constexpr auto all() {
    return std::array{
        parameter<rma_rw_parameters>{"T_DC", [](auto& p) -> std::int64_t& { return p.t_dc; }, 0,
                                     std::int64_t{1} << 24,
                                     "every T_DC-th rank hosts a counter; 0: one per node, or per "
                                     "rank if there is one node"},
        parameter<rma_rw_parameters>{"T_R", [](auto& p) -> std::int64_t& { return p.t_r; }, 1,
                                     std::int64_t{1} << 40,
                                     "readers that enter at a counter before a waiting writer"},
        parameter<rma_rw_parameters>{"T_L1", [](auto& p) -> std::int64_t& { return p.t_l[0]; }, 1,
                                     tree_status::most_count,
                                     "T_L,1: writers in a row at the root before the readers"},
        parameter<rma_rw_parameters>{"T_L2", [](auto& p) -> std::int64_t& { return p.t_l[1]; }, 0,
                                     tree_status::most_count,
                                     "T_L,2: handoffs inside an element of level 2 in a row"},
        parameter<rma_rw_parameters>{"T_L3", [](auto& p) -> std::int64_t& { return p.t_l[2]; }, 0,
                                     tree_status::most_count, "T_L,3: the same at level 3"},
        parameter<rma_rw_parameters>{"T_L4", [](auto& p) -> std::int64_t& { return p.t_l[3]; }, 0,
                                     tree_status::most_count, "T_L,4: the same at level 4"},
    };
  }
};

template <rma::port Port>
class rma_rw {
  using tree = queue_tree<Port>;
  using counters = distributed_counter<Port>;
  using order = tree_status::order;

 public:
  static constexpr facts about{
      .name = "rma-rw",
      .what = kind::rw,
      .source = "High-Performance Distributed RMA Locks, section 3, corrected",
      .bytes_home = 8,
      .bytes_per_node = 32,
      .bytes_per_participant = 16,
  };
  using parameters = rma_rw_parameters;

  struct cells {
    typename tree::cells queues;
    typename counters::cells counter;

    static cells place(rma::layout& in, const rma::topology& machine, const parameters&,
                       rma::rank_t home) {
      return {tree::cells::place(in, machine, home), counters::cells::place(in)};
    }
  };

  rma_rw(rma::participant<Port>& me, const cells& where, const parameters& set = {})
      : port_(me.port()),
        tree_(me, where.queues),
        counter_(me, where.counter, set.t_dc, set.t_r),
        set_(set) {}

  // ---- readers: Listings 9 and 10 ----

  void lock_shared() {
    for (rma::backoff back_off = poll_schedule(); !enter_with_a_ticket();) await_retry(back_off);
  }

  /// Enters unless a writer is in, or T_R readers have entered and a writer waits. Reads the
  /// counter first: no network operation on our node, else 1 get. Then, unless it would be in vain,
  /// 1 fetch-add, and 1 add to withdraw; at T_R the reset of the counter as well.
  [[nodiscard]] bool try_lock_shared() {
    return counter_.next_ticket() <= t_r() && enter_with_a_ticket();  // M7
  }

  void unlock_shared() { counter_.depart(); }

  // ---- writers: Listings 4, 5, 7 and 8 ----

  void lock() {
    tree_.take_queue_node();
    for (int level = tree_.levels(); level >= 1; --level)
      if (tree_.enter(level) == order::enter) return;
    // This writer is the head of the root's queue: it was empty, or the lock went to the readers
    // (MODE_CHANGE).
    counter_.start_scan();
    for (rma::backoff b = poll_schedule(); !counter_.readers_had_their_share();)
      port_.pause(b.next());
    counter_.take_from_readers();
    for (rma::backoff b = poll_schedule(); !counter_.readers_are_gone();) port_.pause(b.next());
    counter_.forget_departed();
  }

  /// Takes the lock if no writer is in a queue on the way up and no reader is in.
  [[nodiscard]] bool try_lock() {
    tree_.take_queue_node();
    for (int level = tree_.levels(); level >= 1; --level)
      if (!tree_.try_enter(level)) return withdraw(level + 1);
    counter_.start_scan();
    if (!counter_.readers_had_their_share()) return withdraw(1);
    counter_.take_from_readers();
    if (!counter_.readers_are_gone()) {
      counter_.give_to_readers();  // before our successor is the head
      return withdraw(1);
    }
    counter_.forget_departed();
    return true;
  }

  void unlock() {
    release(tree_.levels());
    tree_.give_back_queue_node();
  }

 private:
  /// For a reader that polls its counter and for a writer that polls them all.
  [[nodiscard]] static constexpr rma::backoff poll_schedule() { return {200, 20'000}; }
  [[nodiscard]] rma::word t_r() const { return static_cast<rma::word>(set_.t_r); }

  // Listing 9, lines 2 to 4 and 10 to 17: draws a ticket, and gives it back if it is too high.
  [[nodiscard]] bool enter_with_a_ticket() {
    const rma::word ticket = counter_.arrive();
    if (ticket < t_r()) return true;
    if (ticket == t_r() && !tree_.occupied(1) && counter_.reset_by_reader()) return true;
    counter_.back_off();
    return false;
  }

  // Listing 9, lines 5 to 9, and M3: waits until it makes sense to try again.
  void await_retry(rma::backoff& back_off) {
    while (true) {
      const rma::word arrived = counter_.await_readers_mode(back_off);
      if (arrived < t_r()) return;
      port_.pause(back_off.next());
      // M3: the counter is full and there is no writer to empty it. A reader must try again; the
      // one that draws the ticket T_R then resets it.
      if (arrived == t_r() && !tree_.occupied(1)) return;
    }
  }

  void release(int level) {
    if (level == 1) return release_root();
    const rma::word succ = tree_.successor(level);
    if (succ != rma::null_ref && tree_.status.count(level) < threshold(level))
      return tree_.pass(level, succ, tree_.status.passed_at(level));
    release(level - 1);
    tree_.leave(level, succ, tree_status(order::acquire_parent));
  }

  // Listing 8. M5: T_L,1, not T_W.
  void release_root() {
    const rma::word succ = tree_.successor(1);
    if (succ != rma::null_ref && tree_.status.count(1) + 1 < threshold(1))
      return tree_.pass(1, succ, tree_.status.passed_at(1));
    counter_.give_to_readers();
    tree_.leave(1, succ, tree_status(order::mode_change));
  }

  // An attempt failed: leaves the queues from `level` down to N. Successors must climb.
  [[nodiscard]] bool withdraw(int level) {
    if (level == 1) tree_.leave(level++, rma::null_ref, tree_status(order::mode_change));
    for (; level <= tree_.levels(); ++level)
      tree_.leave(level, rma::null_ref, tree_status(order::acquire_parent));
    tree_.give_back_queue_node();
    return false;
  }

  [[nodiscard]] std::int64_t threshold(int level) const {
    return set_.t_l[static_cast<std::size_t>(level - 1)];
  }

  Port& port_;
  tree tree_;
  counters counter_;
  parameters set_;
};

}  // namespace lockflight::lock
