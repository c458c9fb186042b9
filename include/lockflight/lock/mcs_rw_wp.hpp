// mcs-rw-wp: the MCS reader-writer lock that prefers writers. One word of state holds which
// participants are in and interested; writers queue, and readers that meet a writer wait as a
// group.
//
// Source: Mellor-Crummey and Scott, "Scalable Reader-Writer Synchronization for Shared-Memory
// Multiprocessors" (PPoPP 1991), section 3, the writer-preference lock, as "MPI passive target
// synchronization on a non-cache-coherent many-core" (SCC paper, section 4.3) uses it: interested
// readers, interested writers and the active writer in one cell.
//
// Differences from the text:
// - A reader first counts itself as active, and enters if no writer is interested and no reader
//   waits: one operation. (The paper queues every reader.) Otherwise it withdraws and joins the
//   waiting group.
// - A group of waiting readers is let in by one compare-and-swap of the state, by the participant
//   that changed the state last and left no writer in it: the group's first reader, the writer that
//   leaves, or a reader that came between. (The paper's flags are in separate words, and the window
//   between them is closed by reading twice.)
// - An interested writer becomes active by compare-and-swap in the same way, when no reader is
//   active.
//
// Invariants: at most one writer, the head of the writers' queue, is interested or active. A
// participant that changes the state settles it (settle) with one attempt; if that fails, the
// participant that changed the state in between settles it.
//
// Order: writers are first come, first served; readers enter when no writer is interested.
// Fairness: none for readers, which writers overtake for ever. A writer waits for the readers that
// are in and for the writers before it. No participant waits to leave.
//
// Cost in network operations; waiting is local:
// | shared lock, its unlock, no writer | 1 fetch-add, 1 fetch-add        |
// | shared lock behind a writer        | 3 fetch-adds, 1 swap, 1 put (*) |
// | exclusive lock, free               | 1 swap, 1 compare-swap          |
// | its unlock, no successor           | 1 fetch-add, 1 compare-swap     |
// | handoff between writers            | 1 put                           |
// (*) The put lets in the reader that came before it; the first reader of a group has none.
#pragma once

#include <array>
#include <cstdint>

#include "lockflight/lock/about.hpp"
#include "lockflight/rma/assert.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::lock {

struct mcs_rw_wp_parameters {
  [[nodiscard]] static constexpr std::array<parameter<mcs_rw_wp_parameters>, 0> all() { return {}; }
};

template <rma::port Port>
class mcs_rw_wp {
 public:
  static constexpr facts about{
      .name = "mcs-rw-wp",
      .what = kind::rw,
      .source =
          "Mellor-Crummey and Scott 1991, writer preference; MPI passive target synchronization "
          "on a non-cache-coherent many-core, section 4.3",
      .bytes_home = 32,
      .bytes_per_node = 0,
      .bytes_per_participant = 16,
  };
  using parameters = mcs_rw_wp_parameters;

  /// This lock's words, all at the home.
  struct cells {
    rma::nic_cell writer_tail;    // the queue node of the last writer, or null_ref
    rma::nic_cell reader_head;    // that of the reader that began to wait last, or null_ref
    rma::nic_cell state;          // active readers | readers, writer interested | writer active
    rma::plain_cell writer_head;  // that of the writer that waits for the readers

    static cells place(rma::layout& in, const rma::topology&, const parameters&, rma::rank_t home) {
      const auto words = in.take<rma::nic_cell>(3).at(home);
      return {words, words + 1, words + 2, in.take<rma::plain_cell>(1).at(home)};
    }
  };

  mcs_rw_wp(rma::participant<Port>& me, const cells& where, const parameters& = {})
      : me_(me), port_(me.port()), cells_(where) {}

  // ---- readers ----

  void lock_shared() {
    if (try_lock_shared()) return;

    const rma::queue_node node = me_.take_queue_node();
    port_.store(node[blocked], 1);  // visible before the swap publishes the node (C12)
    const rma::word before_us = rma::swap_now(port_, cells_.reader_head, rma::to_word(node.first));
    if (before_us == rma::null_ref)  // the first of a group: it makes the group known
      settle(rma::fetch_add_now(port_, cells_.state, readers_interested) + readers_interested);
    port_.await(node[blocked], rma::equals(0));
    if (before_us != rma::null_ref) {
      // This reader is active, so no writer can become active before the next reader is counted
      // too.
      settle(rma::fetch_add_now(port_, cells_.state, reader) + reader);
      wake(before_us);
    }
    me_.give_back(node);  // only the participant that woke us knew it
  }

  /// Enters unless a writer is in or interested, or a group of readers waits. 1 fetch-add; 1 more
  /// to withdraw.
  [[nodiscard]] bool try_lock_shared() {
    // No reader overtakes a group: readers that come and go could change the state for ever while
    // other participants try to let the group in.
    constexpr rma::word anybody_ahead = any_writer | readers_interested;
    if ((rma::fetch_add_now(port_, cells_.state, reader) & anybody_ahead) == 0) return true;
    unlock_shared();
    return false;
  }

  void unlock_shared() {
    const rma::word before = rma::fetch_add_now(port_, cells_.state, 0 - reader);
    rma::ensure(before >= reader, "a reader that leaves is counted");
    settle(before - reader);
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

  /// Takes the lock if no writer is in the queue, no reader is in and no reader waits. 2
  /// compare-swaps.
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
    if (succ != rma::null_ref) {
      port_.store(node_[next], rma::null_ref);
      wake(succ);
      me_.give_back(node_);
      return;
    }
    // Flushed before we leave the queue, so that the next writer does not find our flag.
    settle(rma::fetch_add_now(port_, cells_.state, 0 - writer_active) - writer_active);
    leave_queue(succ);
  }

 private:
  // The words of a queue node. A free one is all zero (C25). A waiting reader's link is a local
  // variable of its call, since only this reader wakes the reader before it.
  static constexpr std::uint32_t next = 0;  // the queue node of the writer behind us, or null_ref
  static constexpr std::uint32_t blocked = 1;  // 1 while we must wait

  // The state. WRIFLAG, WRAFLAG, RDRIFLAG and RC_INCR of the paper.
  static constexpr rma::word writer_interested = 1;  // a writer heads the queue, waits for readers
  static constexpr rma::word writer_active = 2;
  static constexpr rma::word any_writer = writer_interested | writer_active;
  static constexpr rma::word readers_interested = 4;  // a group of readers waits
  static constexpr rma::word reader = 8;  // the bits above count the readers that are in

  [[nodiscard]] bool take_free_state() {
    return rma::compare_swap_now(port_, cells_.state, 0, writer_active) == 0;
  }

  // The participant that changed the state settles it: it makes the interested writer active, or
  // lets the readers in. It tries once. If the state has changed since, the participant that
  // changed it settles it after us. So no participant tries for ever, in particular none that
  // leaves.

  void settle(rma::word state) {
    if (writer_becomes_active(state))
      wake_head();
    else
      let_readers_in(state);
  }

  /// Makes the interested writer the active one, unless a reader is active: the last reader will do
  /// it then. True for the participant that did it, which must wake that writer.
  [[nodiscard]] bool writer_becomes_active(rma::word state) {
    return (state & ~readers_interested) == writer_interested &&
           rma::compare_swap_now(port_, cells_.state, state,
                                 state - writer_interested + writer_active) == state;
  }

  /// Counts the reader of the group that came last as active and wakes it; the readers of the group
  /// then wake each other. Not while a writer is in or interested: the last writer will do it.
  void let_readers_in(rma::word state) {
    if ((state & any_writer) != 0 || (state & readers_interested) == 0) return;
    const rma::word seen =
        rma::compare_swap_now(port_, cells_.state, state, state - readers_interested + reader);
    if (seen == state) wake(rma::swap_now(port_, cells_.reader_head, rma::null_ref));
  }

  /// Makes the head of the writers' queue known to the readers. True if we made a writer active:
  /// this one, or one behind it. Else the last reader will.
  [[nodiscard]] bool head_may_enter(rma::word head) {
    // Flushed before the flag is set: a participant that sees the flag reads the head.
    rma::put_now(port_, cells_.writer_head, head);
    return writer_becomes_active(rma::fetch_add_now(port_, cells_.state, writer_interested) +
                                 writer_interested);
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
