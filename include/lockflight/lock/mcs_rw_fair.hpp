// mcs-rw-fair: the fair MCS reader-writer lock. Neighbouring readers of its queue are in together.
//
// Source: Mellor-Crummey and Scott, "Scalable Reader-Writer Synchronization for Shared-Memory
// Multiprocessors" (PPoPP 1991), section 3, the fair lock: `class`, `next`, `blocked` and
// `successor_class` in each queue node, `reader_count` and `next_writer` in the lock.
//
// Differences from the text, each marked at its site:
// F1  "A writer waits" is a flag in the word that counts the readers. So exactly one reader wakes
//     the writer: the one that leaves the word with the flag alone. (The text reads two words.)
// F2  The class of a queue node is in the reference to it, so that no participant reads it over the
//     network.
// F3  A queue node is plain memory, which no NIC may read-modify-write. Where the text has a
//     compare-and-swap on `blocked` and `successor_class` together, a reader announces itself in
//     `successor_class`, reads `blocked`, and writes into its link what it read.
// F4  A reader without a reader before or behind it is not counted; a reader that enters behind it
//     counts it too. Such a reader needs only the queue's tail.
// F5  try_lock_shared, which the paper does not have, counts itself beside the queue.
//
// Order: first come, first served. Fairness: once its swap on the tail has taken effect, a waiter
// is overtaken only by attempts (try_lock_shared) that come while readers are in.
//
// Cost in network operations; waiting is local:
// | shared lock and unlock, alone | 1 swap, 1 compare-swap                    |
// | the same beside a reader (*)  | 1 swap, 2 puts, 1 get, 1 add, 1 fetch-add |
// | exclusive lock, free          | 1 swap, 1 compare-swap                    |
// | its unlock, no successor      | 1 add, 1 compare-swap                     |
// | handoff between writers       | 1 put                                     |
// (*) At most; the last reader in the queue 1 compare-swap more.
#pragma once

#include <array>
#include <cstdint>

#include "lockflight/lock/about.hpp"
#include "lockflight/rma/assert.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::lock {

struct mcs_rw_fair_parameters {
  [[nodiscard]] static constexpr std::array<parameter<mcs_rw_fair_parameters>, 0> all() {
    return {};
  }
};

template <rma::port Port>
class mcs_rw_fair {
 public:
  static constexpr facts about{
      .name = "mcs-rw-fair",
      .what = kind::rw,
      .source = "Mellor-Crummey and Scott 1991, the fair lock, corrected",
      .bytes_home = 24,
      .bytes_per_node = 0,
      .bytes_per_participant = 24,
  };
  using parameters = mcs_rw_fair_parameters;

  /// This lock's words, all at the home.
  struct cells {
    rma::nic_cell tail;           // the last queue node in the queue, or null_ref
    rma::nic_cell state;          // reader_count | a writer waits for the readers, or is in (F1)
    rma::plain_cell next_writer;  // the writer that waits for the readers

    static cells place(rma::layout& in, const rma::topology&, const parameters&, rma::rank_t home) {
      const auto words = in.take<rma::nic_cell>(2).at(home);
      return {words, words + 1, in.take<rma::plain_cell>(1).at(home)};
    }
  };

  mcs_rw_fair(rma::participant<Port>& me, const cells& where, const parameters& = {})
      : me_(me), port_(me.port()), cells_(where) {}

  // ---- readers ----

  void lock_shared() {
    node_ = me_.take_queue_node();
    in_queue_ = true;
    port_.store(node_[blocked], waits);  // visible before the swap publishes the node (C12)
    const rma::word pred = rma::swap_now(port_, cells_.tail, own());
    if (pred == rma::null_ref) {
      be_in(uncounted);
    } else if (is_writer(pred)) {
      write(pred, next, own());
      counted_ = port_.await(node_[blocked], rma::differs_from(waits)) == counted;
    } else {
      join(pred);
    }
    // A reader that came behind us while we waited has read that, and waits for us.
    port_.fence();  // a reader that comes behind us sees that we are in, or we see it (C47)
    if (port_.load(node_[successor_class]) == a_reader) let_in_behind();
  }

  /// Enters unless a writer is in or waits for the readers that are in. 1 compare-swap, more if
  /// readers come and go meanwhile.
  [[nodiscard]] bool try_lock_shared() {
    // F5: a writer that is in has its flag set, and one that comes later finds us counted.
    for (rma::word state = 0; (state & writer) == 0; port_.pause(0)) {
      const rma::word seen = rma::compare_swap_now(port_, cells_.state, state, state + reader);
      if (seen == state) {
        in_queue_ = false;
        return true;
      }
      state = seen;
    }
    return false;
  }

  void unlock_shared() {
    if (!in_queue_) return depart();
    rma::word succ = port_.load(node_[next]);
    if (succ == rma::null_ref) {
      if (rma::compare_swap_now(port_, cells_.tail, own(), rma::null_ref) == own()) {
        give_queue_node_back();
        if (counted_) depart();
        return;
      }
      // A successor swapped itself in behind this node and is about to write its link.
      rma::ensure(me_.has_taken(node_), "only the holder releases");
      succ = port_.await(node_[next], rma::differs_from(rma::null_ref));
    }
    give_queue_node_back();
    if (!is_writer(succ))
      depart();  // F4: with a reader behind us we are counted
    else
      next_is(succ, counted_ ? reader : 0);
  }

  // ---- writers ----

  void lock() {
    node_ = me_.take_queue_node();
    const rma::word pred = rma::swap_now(port_, cells_.tail, own() + of_writer);
    if (pred == rma::null_ref && take_free_state()) return;

    // The participant that will wake us does not know us yet, and then it sees `blocked` set (C12).
    port_.store(node_[blocked], waits);
    if (pred == rma::null_ref)
      next_is(own() + of_writer, 0);
    else
      write(pred, next, own() + of_writer);
    port_.await(node_[blocked], rma::differs_from(waits));
  }

  /// Takes the lock if the queue is empty and no reader is counted. 2 compare-swaps.
  [[nodiscard]] bool try_lock() {
    node_ = me_.take_queue_node();
    if (rma::compare_swap_now(port_, cells_.tail, rma::null_ref, own() + of_writer) !=
        rma::null_ref) {
      me_.give_back(node_);
      return false;
    }
    if (take_free_state()) return true;
    leave_queue(port_.load(node_[next]));
    return false;
  }

  void unlock() {
    const rma::word succ = port_.load(node_[next]);
    if (succ != rma::null_ref && is_writer(succ)) {
      give_queue_node_back();
      write(succ, blocked, uncounted);  // the flag is the successor's now
      return;
    }
    // Flushed before another participant can have the lock: until then the flag must be ours alone.
    add_now(0 - writer);
    leave_queue(succ);
  }

 private:
  // The words of a queue node. A free one is all zero (C25).
  static constexpr std::uint32_t next = 0;     // the successor's queue node, or null_ref
  static constexpr std::uint32_t blocked = 1;  // `waits`, or how its reader is in
  static constexpr std::uint32_t successor_class =
      2;  // `a_reader` once a reader has come behind a reader
  static constexpr rma::word waits = 1;
  static constexpr rma::word uncounted = 2;  // in, and not in reader_count (F4)
  static constexpr rma::word counted = 3;
  static constexpr rma::word a_reader = 1;

  // A reference to a queue node holds its class (F2), and in a reader's link also whether the
  // reader waits for its predecessor to let it in (F3). The low bits are free, since queue nodes
  // begin at multiples of 8 words.
  static constexpr rma::word of_writer = 1;
  static constexpr rma::word of_waiting_reader = 2;
  static constexpr rma::word tags = rma::line_words - 1;
  [[nodiscard]] static constexpr bool is_writer(rma::word node) { return (node & of_writer) != 0; }

  // The state.
  static constexpr rma::word writer = 1;
  static constexpr rma::word reader = 2;  // the bits above count the readers

  [[nodiscard]] rma::word own() const { return rma::to_word(node_.first); }

  [[nodiscard]] bool take_free_state() {
    return rma::compare_swap_now(port_, cells_.state, 0, writer) == 0;
  }

  // Behind a reader: we enter at once if it is in, else it lets us in (F3). It does not leave
  // before our link is written, and its queue node stays valid until then.
  void join(rma::word pred) {
    // Flushed before the read: a predecessor that we find waiting sees us when it has stopped
    // waiting.
    write(pred, successor_class, a_reader);
    const rma::word how = rma::get_now(port_, word_of(pred, blocked));
    if (how == waits) {
      write(pred, next, own() + of_waiting_reader);
      port_.await(node_[blocked], rma::differs_from(waits));
      counted_ = true;
      return;
    }
    // Before the link, since the predecessor subtracts itself once it has read the link.
    add_now(how == uncounted ? 2 * reader : reader);
    write(pred, next, own());
    be_in(counted);
  }

  // This participant is in, and no other one let it in.
  void be_in(rma::word how) {
    counted_ = how == counted;
    port_.store(node_[blocked], how);
  }

  // A reader is behind us. If it saw us wait, we must let it in; else it is in, and has counted us.
  void let_in_behind() {
    const rma::word succ = port_.await(node_[next], rma::differs_from(rma::null_ref));
    if ((succ & of_waiting_reader) != 0) {
      // Flushed before it is let in: it may leave at once, and subtracts itself.
      add_now(counted_ ? reader : 2 * reader);
      write(succ, blocked, counted);
    }
    counted_ = true;
  }

  // A counted reader leaves. F1: the last one lets the waiting writer in, if there is one.
  void depart() {
    const rma::word before = rma::fetch_add_now(port_, cells_.state, 0 - reader);
    rma::ensure(before >= reader, "a reader that leaves is counted");
    if (before == reader + writer)
      write(rma::get_now(port_, cells_.next_writer), blocked, uncounted);
  }

  // F1: all readers before this writer are in and counted, or gone. This operation also subtracts
  // `leaving` from the count. The participant that leaves the flag alone in the state lets the
  // writer in.
  void next_is(rma::word node, rma::word leaving) {
    // Flushed before the flag is set: a participant that sees the flag reads next_writer.
    rma::put_now(port_, cells_.next_writer, node);
    const rma::word before = rma::fetch_add_now(port_, cells_.state, writer - leaving);
    rma::ensure((before & writer) == 0, "one writer at a time waits for the readers or is in");
    rma::ensure(before >= leaving, "a reader that leaves is counted");
    if (before == leaving) write(node, blocked, uncounted);
  }

  // A writer that does not have the lock, any more or at all, lets its successor proceed.
  void leave_queue(rma::word succ) {
    const rma::word node = own() + of_writer;
    if (succ == rma::null_ref) {
      if (rma::compare_swap_now(port_, cells_.tail, node, rma::null_ref) == node)
        return give_queue_node_back();
      // A successor swapped itself in behind this node and is about to write its link.
      rma::ensure(me_.has_taken(node_), "only the holder releases");
      succ = port_.await(node_[next], rma::differs_from(rma::null_ref));
    }
    give_queue_node_back();
    if (is_writer(succ))
      next_is(succ, 0);
    else
      write(succ, blocked, uncounted);
  }

  /// No other participant needs our queue node any more: the successor has written its link, or
  /// there is none.
  void give_queue_node_back() {
    for (const std::uint32_t word : {next, blocked, successor_class}) port_.store(node_[word], 0);
    me_.give_back(node_);
  }

  [[nodiscard]] static constexpr rma::plain_cell word_of(rma::word node, std::uint32_t word) {
    return rma::queue_node{rma::from_word<rma::plain_cell>(node & ~tags)}[word];
  }
  // Flushed, else a waiter would wait until we flush something else.
  void write(rma::word node, std::uint32_t word, rma::word value) {
    rma::put_now(port_, word_of(node, word), value);
  }
  void add_now(rma::word value) {
    port_.add(cells_.state, value);
    port_.flush(cells_.state.home);
  }

  rma::participant<Port>& me_;
  Port& port_;
  cells cells_;
  rma::queue_node node_;
  bool in_queue_ = true;  // else we are in beside the queue (F5)
  bool counted_ = false;  // F4
};

}  // namespace lockflight::lock
