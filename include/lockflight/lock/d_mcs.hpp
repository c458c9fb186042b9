// d-mcs: the MCS queue lock over one-sided operations.
//
// Source: "High-Performance Distributed RMA Locks", section 2.4, Listings 2 and 3, after Mellor-
// Crummey and Scott 1991. Also the RDMA MCS competitor of the ALock paper: every access to the tail
// is nic class, from the home node as loopback.
//
// Order: first come, first served, by the order of the swaps on TAIL.
// Fairness bound: overtaken by nobody once the swap has taken effect.
// Network operations: uncontended 1 swap to acquire and 1 compare-swap to release; with a
// predecessor 1 swap + 1 put; handoff 1 put. Waiting is local.
//
// Two listings' names, one meaning: WAIT and STATUS are the same word.
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
    rma::nic_cell tail;  // at the home: the line of the last in the queue, or null_ref

    static cells place(rma::layout& in, const rma::topology&, const parameters&, rma::rank_t home) {
      return {in.take<rma::nic_cell>(1).at(home)};
    }
  };

  /// How often a waiter can be overtaken by those who came later.
  [[nodiscard]] static constexpr std::int64_t most_overtaken(const rma::topology&,
                                                             const parameters&) {
    return 0;
  }

  d_mcs(rma::participant<Port>& me, const cells& where, const parameters& = {})
      : me_(me), port_(me.port()), tail_(where.tail) {}

  void lock() {
    line_ = me_.take_line();
    const rma::word pred = rma::swap_now(port_, tail_, rma::to_word(line_.first));
    if (pred == rma::null_ref) return;  // the queue was empty: the lock is ours

    // The predecessor cannot know us before we link to it, and sees WAIT as we leave it here: a
    // store is visible before what is posted after it takes effect (C12).
    port_.store(line_[wait], 1);
    // Make the predecessor see us. The flush is what lets it: it may be waiting for this link.
    const rma::line pred_line{rma::from_word<rma::plain_cell>(pred)};
    rma::put_now(port_, pred_line[next], rma::to_word(line_.first));
    port_.await(line_[wait], rma::equals(0));
  }

  /// Takes the lock if nobody is in the queue. 1 compare-swap.
  [[nodiscard]] bool try_lock() {
    line_ = me_.take_line();
    const rma::word pred =
        rma::compare_swap_now(port_, tail_, rma::null_ref, rma::to_word(line_.first));
    if (pred != rma::null_ref) me_.give_back(line_);
    return pred == rma::null_ref;
  }

  void unlock() {
    // The line goes back only when nobody can refer to it any more: after the compare-swap took us
    // off the queue, or after our successor, the only one who knew us, had written its link.
    if (port_.load(line_[next]) == rma::null_ref) {
      const rma::word me = rma::to_word(line_.first);
      if (rma::compare_swap_now(port_, tail_, me, rma::null_ref) == me) {
        me_.give_back(line_);
        return;
      }
      // Somebody swapped itself in behind us and is about to write its link.
      rma::ensure(me_.has_taken(line_), "only the holder releases");
      port_.await(line_[next], rma::differs_from(rma::null_ref));
    }
    const rma::line succ{rma::from_word<rma::plain_cell>(port_.load(line_[next]))};
    port_.store(line_[next], rma::null_ref);
    // Handoff: one put. Flushed, else the successor may wait for as long as we flush nothing else.
    rma::put_now(port_, succ[wait], 0);
    me_.give_back(line_);
  }

 private:
  // The words of a line (section 2.4.1). A free line is all zero (C25), so that who finds
  // the lock free prepares nothing: NEXT is reset by whoever read a link from it, WAIT is set by
  // whoever has to wait and reset by its predecessor.
  static constexpr std::uint32_t next = 0;  // NEXT: the line behind ours, or null_ref
  static constexpr std::uint32_t wait = 1;  // WAIT: 1 while we must wait

  rma::participant<Port>& me_;
  Port& port_;
  rma::nic_cell tail_;
  rma::line line_;
};

}  // namespace lockflight::lock
