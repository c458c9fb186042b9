// mcs-rw-wp: the MCS reader-writer lock that prefers writers. One word of state says who is in and
// who is interested; writers queue, and readers that meet a writer wait as a group.
//
// Source: Mellor-Crummey and Scott, "Scalable Reader-Writer Synchronization for Shared-Memory
// Multiprocessors" (PPoPP 1991), section 3, the writer-preference lock, as "MPI passive target
// synchronization on a non-cache-coherent many-core" (SCC paper, section 4.3) uses it: interested
// readers, interested writers and the active writer in one cell.
//
// What differs from the text:
//   - a reader first counts itself as active, and enters if no writer is interested and no reader
//     waits: one operation (the paper queues every reader); else it withdraws and joins the group
//     that waits;
//   - a group of waiting readers is let in by one compare-and-swap of the state, by whoever changed
//     the state last and left no writer in it: its first reader, the writer that leaves, or a
//     reader that came between (the paper's flags are set apart, and the window between them is
//     closed by looking twice);
//   - an interested writer becomes active by compare-and-swap, in the same way, when no reader is.
//
// Order: writers first come, first served; readers enter when no writer is interested.
// Fairness: none for readers, which writers overtake for ever; a writer waits for the readers that
// are in, and for the writers before it. Nobody waits to leave.
// Network operations, uncontended: shared 1 fetch-add + 1 fetch-add; exclusive 1 swap + 1
// compare-swap, then 1 fetch-add + 1 compare-swap. Handoff between writers 1 put. A reader behind a
// writer: 2 fetch-adds and 1 swap (the first of a group 1 fetch-add more), and 1 fetch-add and 1
// put to let the reader in that came before it. Waiting is local.
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
    rma::nic_cell writer_tail;    // the line of the last writer in the queue, or null_ref
    rma::nic_cell reader_head;    // the line of the reader that began to wait last, or null_ref
    rma::nic_cell state;          // active readers | readers, writer interested | writer active
    rma::plain_cell writer_head;  // the line of the writer that waits for the readers

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

    const rma::line line = me_.take_line();
    port_.store(line[blocked], 1);  // visible before the swap publishes the line (C12)
    const rma::word before_us = rma::swap_now(port_, cells_.reader_head, rma::to_word(line.first));
    if (before_us == rma::null_ref)  // the first of a group: it makes the group known
      settle(rma::fetch_add_now(port_, cells_.state, readers_interested) + readers_interested);
    port_.await(line[blocked], rma::equals(0));
    if (before_us != rma::null_ref) {
      // We are active, so no writer can become so before the next reader is counted too.
      settle(rma::fetch_add_now(port_, cells_.state, reader) + reader);
      wake(before_us);
    }
    me_.give_back(line);  // whoever woke us was the only one who knew it
  }

  /// Enters unless a writer is in or interested, or a group of readers waits. 1 fetch-add; 1 more
  /// to withdraw.
  [[nodiscard]] bool try_lock_shared() {
    // Past a group nobody goes: readers that come and go could change the state for ever under
    // those who let the group in.
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
    line_ = me_.take_line();
    const rma::word own = rma::to_word(line_.first);
    const rma::word pred = rma::swap_now(port_, cells_.writer_tail, own);
    if (pred == rma::null_ref && take_free_state()) return;

    // Who must wake us does not know us yet, and sees `blocked` as we leave it here (C12).
    port_.store(line_[blocked], 1);
    if (pred == rma::null_ref) {
      if (!head_may_enter(own)) await_wake_up();
      return;
    }
    // Flushed: the predecessor may be waiting for this link.
    rma::put_now(port_, rma::line{rma::from_word<rma::plain_cell>(pred)}[next], own);
    await_wake_up();
  }

  /// Takes the lock if no writer is in the queue, no reader is in and none waits. 2 compare-swaps.
  [[nodiscard]] bool try_lock() {
    line_ = me_.take_line();
    const rma::word own = rma::to_word(line_.first);
    if (rma::compare_swap_now(port_, cells_.writer_tail, rma::null_ref, own) != rma::null_ref) {
      me_.give_back(line_);
      return false;
    }
    if (take_free_state()) return true;
    leave_queue(port_.load(line_[next]));
    return false;
  }

  void unlock() {
    const rma::word succ = port_.load(line_[next]);
    if (succ != rma::null_ref) {
      port_.store(line_[next], rma::null_ref);
      wake(succ);
      me_.give_back(line_);
      return;
    }
    // Completed before we leave the queue, so that whoever comes next there does not find our flag.
    settle(rma::fetch_add_now(port_, cells_.state, 0 - writer_active) - writer_active);
    leave_queue(succ);
  }

 private:
  // The words of a line. A free line is all zero (C25). A waiting reader's link stays in its call:
  // only it wakes the reader that came before it.
  static constexpr std::uint32_t next = 0;     // the line of the writer behind us, or null_ref
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

  // What the state asks for, whoever made it so does it: it makes the interested writer active, or
  // lets the readers in. It tries once. If the state has changed since, then whoever changed it
  // comes here after us, so that nobody tries for ever, least of all somebody that leaves.

  void settle(rma::word state) {
    if (writer_becomes_active(state))
      wake_head();
    else
      let_readers_in(state);
  }

  /// True for whoever turns the interested writer into the active one; it must let that one go on.
  /// Not while a reader is active: the last one will do it.
  [[nodiscard]] bool writer_becomes_active(rma::word state) {
    return (state & ~readers_interested) == writer_interested &&
           rma::compare_swap_now(port_, cells_.state, state,
                                 state - writer_interested + writer_active) == state;
  }

  /// Counts the first reader of the group as active and wakes it; those behind it wake each other.
  /// Not while a writer is in or interested: the last one will do it.
  void let_readers_in(rma::word state) {
    if ((state & any_writer) != 0 || (state & readers_interested) == 0) return;
    const rma::word seen =
        rma::compare_swap_now(port_, cells_.state, state, state - readers_interested + reader);
    if (seen == state) wake(rma::swap_now(port_, cells_.reader_head, rma::null_ref));
  }

  /// Makes the head of the writers' queue known to the readers. True if we made a writer active:
  /// this one, or one behind it. Else the last reader does.
  [[nodiscard]] bool head_may_enter(rma::word head) {
    // Flushed before the flag is raised: whoever sees the flag reads the head.
    rma::put_now(port_, cells_.writer_head, head);
    return writer_becomes_active(rma::fetch_add_now(port_, cells_.state, writer_interested) +
                                 writer_interested);
  }

  /// Takes a writer that is not active off the queue. The next one then waits for the readers.
  void leave_queue(rma::word succ) {
    if (succ == rma::null_ref) {
      const rma::word own = rma::to_word(line_.first);
      if (rma::compare_swap_now(port_, cells_.writer_tail, own, rma::null_ref) == own) {
        me_.give_back(line_);
        return;
      }
      // Somebody swapped itself in behind us and is about to write its link.
      rma::ensure(me_.has_taken(line_), "only the holder releases");
      succ = port_.await(line_[next], rma::differs_from(rma::null_ref));
    }
    port_.store(line_[next], rma::null_ref);
    me_.give_back(line_);
    // Not `succ`: a reader may have made that one active since, and it may have left and raised the
    // flag for the one behind it.
    if (head_may_enter(succ)) wake_head();
  }

  /// For whoever made the writer active: no other one becomes the head meanwhile.
  void wake_head() { wake(rma::get_now(port_, cells_.writer_head)); }
  // Flushed, else it may wait for as long as we flush nothing else.
  void wake(rma::word line) {
    rma::put_now(port_, rma::line{rma::from_word<rma::plain_cell>(line)}[blocked], 0);
  }
  void await_wake_up() { port_.await(line_[blocked], rma::equals(0)); }

  rma::participant<Port>& me_;
  Port& port_;
  cells cells_;
  rma::line line_;
};

}  // namespace lockflight::lock
