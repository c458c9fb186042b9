// mcs-rw-wp-listing: the MCS reader-writer lock that prefers writers, as Mellor-Crummey and Scott
// print it: every reader queues. It is for the checker and for simulated runs; mcs_rw_wp.hpp is the
// lock to use.
//
// Source: Mellor-Crummey and Scott, "Scalable Reader-Writer Synchronization for Shared-Memory
// Multiprocessors" (PPoPP 1991), section 3, the writer-preference lock, which "MPI passive target
// synchronization on a non-cache-coherent many-core" (SCC paper, section 4.3) uses. The text of
// 1991 is not among the papers of this project. The steps and their names are those of its
// pseudocode as reader_writer_lock of Intel's TBB adapts it. TBB's writers poll the state. Here a
// writer waits at the flag of its own list entry, as the SCC paper says, and the last reader clears
// that flag.
//
// Differences from the pseudocode:
// - The contract has no fetch-or and no fetch-and. A flag is set by a fetch-add of a participant
//   that knows that it is clear, and cleared by one that knows that it is set, at the same cost.
// - A reader that closes the window reads the state once more, and this read costs what it costs
//   there. But it decides by what its addition returned. A fetch-or may set a flag that a writer is
//   about to set as well, and a fetch-add may not.
// - A reader's link is a local variable, because no other participant reads it.
//
// How it differs from mcs-rw-wp: there, a reader that meets no writer and no waiting reader enters
// with one fetch-add. Here it puts itself on the readers' list, makes the group known, and lets the
// group in.
//
// Invariants: at most one writer, the head of the writers' queue, has set `writer`. A reader that
// has announced its group while no writer was there is in the window until it has counted the
// group; a writer that finds one in the window leaves `window_closed` to it. A writer enters when
// `window_closed` is set and no reader is counted.
//
// Order: writers are first come, first served; readers enter when no writer is interested.
// Fairness: none for readers, which writers overtake for ever. A writer waits for the readers that
// are in and for the writers before it. A writer that leaves waits at most for a successor's link.
//
// Cost in network operations; waiting is local, and so is what a participant writes to itself:
// | shared lock, no writer           | 1 swap, 1 fetch-add, 1 fetch-add, 1 get, 1 swap          |
// | shared lock behind a writer      | 1 swap, 1 fetch-add                                      |
// | shared lock behind a reader      | 1 swap; when it is woken 1 add, 1 put                    |
// | its unlock, no writer            | 1 fetch-add                                              |
// | exclusive lock, free             | 1 swap, 1 put, 2 fetch-adds                              |
// | its unlock, nobody waits         | 1 fetch-add, 1 compare-swap                              |
// | handoff between writers          | 1 put                                                    |
#pragma once

#include <array>
#include <cstdint>

#include "lockflight/lock/about.hpp"
#include "lockflight/rma/assert.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::lock {

struct mcs_rw_wp_listing_parameters {
  [[nodiscard]] static constexpr std::array<parameter<mcs_rw_wp_listing_parameters>, 0> all() {
    return {};
  }
};

template <rma::port Port>
class mcs_rw_wp_listing {
 public:
  static constexpr facts about{
      .name = "mcs-rw-wp-listing",
      .what = kind::rw,
      .source =
          "Mellor-Crummey and Scott 1991, section 3, writer preference, as printed; MPI passive "
          "target synchronization on a non-cache-coherent many-core, section 4.3",
      .bytes_home = 32,
      .bytes_per_node = 0,
      .bytes_per_participant = 16,
      .as_printed = true,
  };
  using parameters = mcs_rw_wp_listing_parameters;

  /// This lock's words, all at the home.
  struct cells {
    rma::nic_cell writer_tail;    // the queue node of the last writer, or null_ref
    rma::nic_cell reader_head;    // that of the reader that began to wait last, or null_ref
    rma::nic_cell state;          // rdr_cnt_and_flags: active readers | the three flags
    rma::plain_cell writer_head;  // that of the writer that waits for the readers

    static cells place(rma::layout& in, const rma::topology&, const parameters&, rma::rank_t home) {
      const auto words = in.take<rma::nic_cell>(3).at(home);
      return {words, words + 1, words + 2, in.take<rma::plain_cell>(1).at(home)};
    }
  };

  mcs_rw_wp_listing(rma::participant<Port>& me, const cells& where, const parameters& = {})
      : me_(me), port_(me.port()), cells_(where) {}

  // start_read
  void lock_shared() {
    const rma::queue_node node = me_.take_queue_node();
    port_.store(node[blocked], 1);  // visible before the swap publishes the node (C12)
    const rma::word behind_us = rma::swap_now(port_, cells_.reader_head, rma::to_word(node.first));
    // The first of its group makes it known, and lets it in unless there is a writer.
    if (behind_us == rma::null_ref &&
        (rma::fetch_add_now(port_, cells_.state, readers_interested) & any_writer) == 0)
      unblock_readers();
    port_.await(node[blocked], rma::equals(0));
    if (behind_us != rma::null_ref) {
      port_.add(cells_.state, reader);
      port_.flush(cells_.state.home);
      wake(behind_us);
    }
    me_.give_back(node);  // only the participant that woke us knew it
  }

  // end_read
  void unlock_shared() {
    const rma::word before = rma::fetch_add_now(port_, cells_.state, 0 - reader);
    rma::ensure(before >= reader, "a reader that leaves is counted");
    if ((before & ~readers_interested) == reader + any_writer)  // the last one, and a writer waits
      wake(rma::get_now(port_, cells_.writer_head));
  }

  // start_write
  void lock() {
    node_ = me_.take_queue_node();
    const rma::word own = rma::to_word(node_.first);
    port_.store(node_[blocked], 1);  // visible before the swap publishes the node (C12)
    const rma::word pred = rma::swap_now(port_, cells_.writer_tail, own);
    if (pred == rma::null_ref)
      set_next_writer(own);
    else
      // Flushed: the predecessor may be waiting for this link.
      rma::put_now(port_, rma::queue_node{rma::from_word<rma::plain_cell>(pred)}[next], own);
    port_.await(node_[blocked], rma::equals(0));
  }

  // end_write
  void unlock() {
    rma::word succ = port_.load(node_[next]);
    if (succ != rma::null_ref) {
      port_.store(node_[next], rma::null_ref);
      wake(succ);
      me_.give_back(node_);
      return;
    }
    // The writers' flags go; the readers that came meanwhile enter before the next writer.
    const rma::word before = rma::fetch_add_now(port_, cells_.state, 0 - any_writer);
    rma::ensure((before & any_writer) == any_writer, "only the holder releases");
    if ((before & readers_interested) != 0) unblock_readers();
    const rma::word own = rma::to_word(node_.first);
    if (rma::compare_swap_now(port_, cells_.writer_tail, own, rma::null_ref) != own) {
      // A successor swapped itself in behind this node and is about to write its link.
      rma::ensure(me_.has_taken(node_), "only the holder releases");
      succ = port_.await(node_[next], rma::differs_from(rma::null_ref));
      port_.store(node_[next], rma::null_ref);
      set_next_writer(succ);
    }
    me_.give_back(node_);
  }

 private:
  // The words of a queue node. A free one is all zero (C25).
  static constexpr std::uint32_t next = 0;  // the queue node of the writer behind us, or null_ref
  static constexpr std::uint32_t blocked = 1;  // 1 while we must wait

  // The state: WFLAG1, WFLAG2, RFLAG and RC_INCR of the pseudocode.
  static constexpr rma::word writer = 1;         // a writer is active or interested
  static constexpr rma::word window_closed = 2;  // and no reader will enter before it
  static constexpr rma::word any_writer = writer | window_closed;
  static constexpr rma::word readers_interested = 4;  // a group of readers waits
  static constexpr rma::word reader = 8;  // the bits above count the readers that are in

  void set_next_writer(rma::word node) {
    // Flushed before the flag is set: a reader that sees both flags reads the head.
    rma::put_now(port_, cells_.writer_head, node);
    if ((rma::fetch_add_now(port_, cells_.state, writer) & readers_interested) != 0)
      return;  // a reader is in the window, and will close it
    if (rma::fetch_add_now(port_, cells_.state, window_closed) < reader) wake(node);
  }

  /// Counts the reader of the group that came last and wakes it; the readers of the group then wake
  /// each other.
  void unblock_readers() {
    const rma::word before = rma::fetch_add_now(port_, cells_.state, reader - readers_interested);
    // The text reads the flags here. A writer is seen that has come since the addition, too; but
    // that one has closed the window itself.
    static_cast<void>(rma::get_now(port_, cells_.state));
    if ((before & writer) != 0) {
      port_.add(cells_.state, window_closed);
      port_.flush(cells_.state.home);
    }
    wake(rma::swap_now(port_, cells_.reader_head, rma::null_ref));
  }

  // Flushed, else the waiter would wait until we flush something else.
  void wake(rma::word node) {
    const auto flag = rma::queue_node{rma::from_word<rma::plain_cell>(node)}[blocked];
    if (flag.home == me_.rank())
      port_.store(flag, 0);
    else
      rma::put_now(port_, flag, 0);
  }

  rma::participant<Port>& me_;
  Port& port_;
  cells cells_;
  rma::queue_node node_;
};

}  // namespace lockflight::lock
