// mcs-rw-rp: the MCS reader-writer lock that prefers readers. Readers count themselves in one word;
// writers queue, and so do readers that meet a writer.
//
// Source: Mellor-Crummey and Scott, "Scalable Reader-Writer Synchronization for Shared-Memory
// Multiprocessors" (PPoPP 1991), section 3, the reader-preference lock, as "FX100 MPI RMA lock
// synchronization" (section 4.2, Figures 6 and 7) maps it to RMA for MPI_Win_lock: its read of the
// count is a get, its writes of `blocked` and of the links are puts.
//
// Differences from the text:
// - fetch-and-or and fetch-and-and are fetch-and-add. A flag is set by one participant at a time,
//   which finds it clear, and cleared by the participant that it belongs to.
// - A writer that finds the lock free takes the state at once, without making itself known to
//   readers.
// - A writer that leaves while no reader is interested hands over to its successor directly, with
//   the state as it is.
//
// Invariants: a reader is counted from its fetch-add until it has left, also while it waits. At
// most one writer, the head of the writers' queue, is interested or active.
//
// Order: readers enter as long as no writer is in, however many writers wait; writers are first
// come, first served among themselves.
// Fairness: none for writers, which readers overtake for ever; a reader waits for one writer.
//
// Cost in network operations; waiting is local:
// | shared lock, its unlock, no writer | 1 fetch-add, 1 fetch-add              |
// | shared lock behind a writer        | 1 fetch-add, 1 swap, 1 get, 1 put (*) |
// | exclusive lock, free               | 1 swap, 1 compare-swap                |
// | its unlock, no successor           | 1 fetch-add, 1 compare-swap           |
// | handoff between writers            | 1 get, 1 put                          |
// (*) The put wakes the reader that came before it, if there is one.
#pragma once

#include <array>
#include <cstdint>

#include "lockflight/lock/about.hpp"
#include "lockflight/rma/assert.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::lock {

struct mcs_rw_rp_parameters {
  [[nodiscard]] static constexpr std::array<parameter<mcs_rw_rp_parameters>, 0> all() { return {}; }
};

template <rma::port Port>
class mcs_rw_rp {
 public:
  static constexpr facts about{
      .name = "mcs-rw-rp",
      .what = kind::rw,
      .source =
          "Mellor-Crummey and Scott 1991, reader preference; FX100 MPI RMA lock "
          "synchronization, section 4.2",
      .bytes_home = 32,
      .bytes_per_node = 0,
      .bytes_per_participant = 16,
  };
  using parameters = mcs_rw_rp_parameters;

  /// This lock's words, all at the home.
  struct cells {
    rma::nic_cell writer_tail;    // the queue node of the last writer, or null_ref
    rma::nic_cell reader_head;    // that of the reader that began to wait last, or null_ref
    rma::nic_cell state;          // interested readers | writer active | writer interested
    rma::plain_cell writer_head;  // that of the writer that waits for the readers

    static cells place(rma::layout& in, const rma::topology&, const parameters&, rma::rank_t home) {
      const auto words = in.take<rma::nic_cell>(3).at(home);
      return {words, words + 1, words + 2, in.take<rma::plain_cell>(1).at(home)};
    }
  };

  mcs_rw_rp(rma::participant<Port>& me, const cells& where, const parameters& = {})
      : me_(me), port_(me.port()), cells_(where) {}

  // ---- readers ----

  void lock_shared() {
    // Counted from here on, also while we wait: no other writer becomes active before we were in.
    if ((rma::fetch_add_now(port_, cells_.state, reader) & writer_active) == 0) return;

    const rma::queue_node node = me_.take_queue_node();
    port_.store(node[blocked], 1);  // visible before the swap publishes the node (C12)
    const rma::word before_us = rma::swap_now(port_, cells_.reader_head, rma::to_word(node.first));
    // The writer may have left before it could see us among the waiting readers.
    if ((rma::get_now(port_, cells_.state) & writer_active) == 0) wake_readers();
    port_.await(node[blocked], rma::equals(0));
    if (before_us != rma::null_ref) wake(before_us);
    me_.give_back(node);  // only the participant that woke us knew it
  }

  /// Enters unless a writer is in. 1 fetch-add; 1 more to withdraw.
  [[nodiscard]] bool try_lock_shared() {
    if ((rma::fetch_add_now(port_, cells_.state, reader) & writer_active) == 0) return true;
    unlock_shared();
    return false;
  }

  void unlock_shared() {
    const rma::word before = rma::fetch_add_now(port_, cells_.state, 0 - reader);
    rma::ensure(before >= reader, "a reader that leaves is counted");
    // The last reader makes the waiting writer active, unless another reader comes in between: then
    // that one is the last.
    if (before == reader + writer_interested && writer_becomes_active()) wake_head();
  }

  // ---- writers ----

  void lock() {
    node_ = me_.take_queue_node();
    const rma::word own = rma::to_word(node_.first);
    const rma::word pred = rma::swap_now(port_, cells_.writer_tail, own);
    if (pred == rma::null_ref && take_free_state()) return;

    // The participant that will wake us does not know us yet, and then it sees `blocked` set (C12).
    port_.store(node_[blocked], 1);
    if (pred == rma::null_ref) {
      if (!head_may_enter(own))
        await_wake_up();
      else
        port_.store(node_[blocked], 0);  // nobody wakes us, and a free node is all zero (C25)
      return;
    }
    // Flushed: the predecessor may be waiting for this link.
    rma::put_now(port_, rma::queue_node{rma::from_word<rma::plain_cell>(pred)}[next], own);
    await_wake_up();
  }

  /// Takes the lock if no writer is in the queue and no reader is counted. 2 compare-swaps.
  [[nodiscard]] bool try_lock() {
    node_ = me_.take_queue_node();
    const rma::word own = rma::to_word(node_.first);
    if (rma::compare_swap_now(port_, cells_.writer_tail, rma::null_ref, own) != rma::null_ref) {
      me_.give_back(node_);
      return false;
    }
    if (take_free_state()) return true;
    leave_queue(port_.load(node_[next]));
    return false;
  }

  void unlock() {
    const rma::word succ = port_.load(node_[next]);
    if (succ != rma::null_ref && rma::get_now(port_, cells_.state) == writer_active) {
      port_.store(node_[next], rma::null_ref);
      wake(succ);
      me_.give_back(node_);
      return;
    }
    // Flushed before we leave the queue: the next writer must find the state free.
    if (rma::fetch_add_now(port_, cells_.state, 0 - writer_active) != writer_active) wake_readers();
    leave_queue(succ);
  }

 private:
  // The words of a queue node. A free one is all zero (C25). A waiting reader's link is a local
  // variable of its call, since only this reader wakes the reader before it.
  static constexpr std::uint32_t next = 0;  // the queue node of the writer behind us, or null_ref
  static constexpr std::uint32_t blocked = 1;  // 1 while we must wait

  // The state. WIFLAG, WAFLAG and RC_INCR of the paper.
  static constexpr rma::word writer_interested = 1;  // a writer heads the queue, waits for readers
  static constexpr rma::word writer_active = 2;
  static constexpr rma::word reader = 4;  // the bits above count the readers that are in or wait

  [[nodiscard]] bool take_free_state() {
    return rma::compare_swap_now(port_, cells_.state, 0, writer_active) == 0;
  }

  /// Makes the interested writer the active one. True for the participant that did it, which must
  /// wake that writer.
  [[nodiscard]] bool writer_becomes_active() {
    return rma::compare_swap_now(port_, cells_.state, writer_interested, writer_active) ==
           writer_interested;
  }

  /// Makes the head of the writers' queue known to the readers. True if we made a writer active:
  /// this one, or one behind it. Else the last reader will.
  [[nodiscard]] bool head_may_enter(rma::word head) {
    // Flushed before the flag is set: a participant that sees the flag reads the head.
    rma::put_now(port_, cells_.writer_head, head);
    return rma::fetch_add_now(port_, cells_.state, writer_interested) == 0 &&
           writer_becomes_active();
  }

  /// Takes a writer that is not active out of the queue. The next writer then waits for the
  /// readers.
  void leave_queue(rma::word succ) {
    if (succ == rma::null_ref) {
      const rma::word own = rma::to_word(node_.first);
      if (rma::compare_swap_now(port_, cells_.writer_tail, own, rma::null_ref) == own) {
        me_.give_back(node_);
        return;
      }
      // A successor swapped itself in behind this node and is about to write its link.
      rma::ensure(me_.has_taken(node_), "only the holder releases");
      succ = port_.await(node_[next], rma::differs_from(rma::null_ref));
    }
    port_.store(node_[next], rma::null_ref);
    me_.give_back(node_);
    // Not `succ`: a reader may have made that writer active since, and that writer may have left
    // and set the flag for its own successor.
    if (head_may_enter(succ)) wake_head();
  }

  /// Waiting readers wake each other, from the last that came to the first.
  void wake_readers() {
    const rma::word last = rma::swap_now(port_, cells_.reader_head, rma::null_ref);
    if (last != rma::null_ref) wake(last);
  }

  /// For the participant that made the writer active: no other writer becomes the head meanwhile.
  void wake_head() { wake(rma::get_now(port_, cells_.writer_head)); }
  // Flushed, else the waiter would wait until we flush something else.
  void wake(rma::word node) {
    rma::put_now(port_, rma::queue_node{rma::from_word<rma::plain_cell>(node)}[blocked], 0);
  }
  void await_wake_up() { port_.await(node_[blocked], rma::equals(0)); }

  rma::participant<Port>& me_;
  Port& port_;
  cells cells_;
  rma::queue_node node_;
};

}  // namespace lockflight::lock
