// shiftlock: a reader-writer lock whose writers queue and hand over to each other, while readers
// count themselves at the home. After some handovers in a row the writers let the readers in.
//
// Source: "ShiftLock: Mitigate One-sided RDMA Lock Contention via Handover" (FAST 2025), the
// protocol. The words are those of the paper: the tail of the writers' queue, the number of readers
// (rdr there), an epoch bit that readers wait for, and the number of releases (rel). A writer that
// lets readers in changes the epoch. The writer after it waits until as many releases are counted
// as there were readers then.
//
// Differences from the text:
// S1  The tail and the state of the readers are two words. In the paper they are one word of 128
//     bits, which a masked atomic changes in part; few networks have that. A writer that finds the
//     queue empty therefore needs one operation more, and so does one that leaves it empty. A bit
//     of the state says that a writer is in, or about to be.
// S2  What the paper sends as messages to a writer (Successor, Handover, ModeChanged) are puts into
//     its queue node.
// S3  A writer that knows no successor lets the readers in first and leaves the queue then. If it
//     has a successor after all, that one begins like the first writer of a queue.
// S4  There are no leases and no reset. A participant that is killed is the business of
//     lock::robust, or ends the run (C36).
// S5  try_lock and try_lock_shared, which the text does not have. try_lock never changes the epoch:
//     two changes that a waiting reader does not read would leave it waiting.
//
// Invariants:
// - While the bit `writer` is set, the head of the queue is in or waits for readers, and readers
//   enter by a change of the epoch alone. The head alone sets and clears the bit and changes the
//   epoch.
// - A reader that finds the bit waits for the epoch to change. It is in the number of readers
//   meanwhile, so the writer after that change waits for it and does not change the epoch again
//   before the reader has left.
// - Of the releases the lowest counter_bits bits are known. Readers that a writer waits for are
//   fewer than these can count, so the writer enters exactly when the last one has left.
//
// Order: writers first come, first served, by the order of their swaps on the tail. Fairness: a
// waiting writer is not overtaken by a later writer, and no waiter starves. Later readers overtake
// a waiting writer until the head of the queue has set the bit `writer`. A waiting reader is
// overtaken by at most `handovers` + 1 writers.
//
// Cost in network operations; a writer waits for a writer locally, other waiters poll:
// | shared lock and unlock       | 1 fetch-add, 1 add                                 |
// | exclusive lock, free         | 1 swap, 1 fetch-add                                |
// | the same, behind a writer    | 1 swap, 1 put                                      |
// | its unlock, no successor     | 1 add, 1 compare-swap; one round trip if posts are ordered |
// | handoff between writers      | 1 put                                              |
// | handoff that lets readers in | 1 fetch-add, 1 put; the successor polls            |
#pragma once

#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "lockflight/lock/about.hpp"
#include "lockflight/lock/part/shift_words.hpp"
#include "lockflight/rma/assert.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::lock {

struct shiftlock_parameters {
  std::int64_t handovers = 15;  // the paper: 16 writers in a row
  std::int64_t counter_bits = 32;

  [[nodiscard]] static constexpr auto all() {
    return std::array{
        parameter<shiftlock_parameters>{
            "handovers", [](auto& p) -> std::int64_t& { return p.handovers; }, 0, 1'000'000,
            "handovers between writers in a row before readers are let in"},
        parameter<shiftlock_parameters>{
            "counter_bits", [](auto& p) -> std::int64_t& { return p.counter_bits; }, 3, 32,
            "bits that count releases; with fewer they wrap around sooner, and fewer ranks can "
            "lock"},
    };
  }
};

template <rma::port Port>
class shiftlock {
 public:
  static constexpr facts about{
      .name = "shiftlock",
      .what = kind::rw,
      .source = "ShiftLock: Mitigate One-sided RDMA Lock Contention via Handover, FAST 2025",
      .bytes_home = 16,
      .bytes_per_node = 0,
      .bytes_per_participant = 16,
  };
  using parameters = shiftlock_parameters;

  /// This lock's words, both at the home.
  struct cells {
    rma::nic_cell tail;   // the queue node of the last writer, or null_ref
    rma::nic_cell state;  // shift_format

    static cells place(rma::layout& in, const rma::topology&, const parameters&, rma::rank_t home) {
      const auto both = in.take<rma::nic_cell>(2).at(home);
      return {both, both + 1};
    }
  };

  /// How many ranks can use a lock with these parameters.
  [[nodiscard]] static constexpr std::int64_t most_ranks(const parameters& set) {
    return format(set.counter_bits).most_participants();
  }

  /// Throws std::invalid_argument if there are more ranks than the state can count.
  shiftlock(rma::participant<Port>& me, const cells& where, const parameters& set = {})
      : me_(me),
        port_(me.port()),
        cells_(where),
        format_(set.counter_bits),
        handovers_(static_cast<rma::word>(set.handovers)) {
    if (me.machine().ranks() > most_ranks(set))
      throw std::invalid_argument(
          "shiftlock with counter_bits=" + std::to_string(set.counter_bits) + ": " +
          std::to_string(me.machine().ranks()) + " ranks (accepted: 1 to " +
          std::to_string(most_ranks(set)) + ", as many as its state can count)");
  }

  // ---- readers ----

  void lock_shared() {
    const rma::word before = rma::fetch_add_now(port_, cells_.state, format::one(format::readers));
    if (format::get(before, format::writer) == 0) return;
    port_.poll(
        cells_.state,
        [was = format::get(before, format::epoch)](rma::word now) {
          return format::get(now, format::epoch) != was;
        },
        poll_schedule());
  }

  /// Enters unless a writer is in or waits for readers. 1 get and 1 compare-swap, more if readers
  /// come and go meanwhile.
  [[nodiscard]] bool try_lock_shared() {
    for (rma::word now = rma::get_now(port_, cells_.state); format::get(now, format::writer) == 0;
         port_.pause(0)) {
      const rma::word seen =
          rma::compare_swap_now(port_, cells_.state, now, now + format::one(format::readers));
      if (seen == now) return true;
      now = seen;
    }
    return false;
  }

  /// Changes both numbers by one add: a reader less, a release more.
  void unlock_shared() { add_now(format_.one_release() - format::one(format::readers)); }

  // ---- writers ----

  void lock() {
    node_ = me_.take_queue_node();
    const rma::word own = rma::to_word(node_.first);
    const rma::word pred = rma::swap_now(port_, cells_.tail, own);
    if (pred == rma::null_ref) return be_head();
    // Successor (S2). Flushed: the predecessor may be waiting for it.
    rma::put_now(port_, word_of(pred, next), own);
    const auto passed =
        shift_grant::from(port_.await(node_[granted], rma::differs_from(shift_grant::waits)));
    port_.store(node_[granted], shift_grant::waits);
    if (passed.get(shift_grant::kind) == shift_grant::head) return be_head();
    epoch_ = passed.get(shift_grant::epoch);
    in_a_row_ = passed.get(shift_grant::in_a_row);
    if (passed.get(shift_grant::kind) == shift_grant::mode_changed)
      await_releases(passed.get(shift_grant::releases));
  }

  /// Takes the lock if no writer is in the queue and no reader is in. 1 compare-swap and 1 get in
  /// one round trip, and 1 compare-swap; to withdraw, 1 compare-swap, or 1 put to a successor.
  [[nodiscard]] bool try_lock() {
    node_ = me_.take_queue_node();
    rma::word pred = 0;
    rma::word state = 0;
    port_.compare_swap(cells_.tail, rma::null_ref, rma::to_word(node_.first), pred);
    port_.get(cells_.state, state);
    port_.flush(cells_.tail.home);
    if (pred != rma::null_ref) {
      me_.give_back(node_);
      return false;
    }
    // S5. If the get came before the compare-swap, the state may be that of a writer before us;
    // then it has changed since.
    if (format::get(state, format::readers) == 0 &&
        rma::compare_swap_now(port_, cells_.state, state, state + format::one(format::writer)) ==
            state) {
      epoch_ = format::get(state, format::epoch);
      in_a_row_ = 0;
      return true;
    }
    leave_queue();
    return false;
  }

  void unlock() {
    const rma::word succ = port_.load(node_[next]);
    if (succ == rma::null_ref) {
      // S3: readers that wait are let in before we know whether a writer is behind us.
      port_.add(cells_.state,
                change_of_epoch() + format_.one_release() - format::one(format::writer));
      // The next head sets the bit `writer`, so we clear it before there can be one.
      if (!rma::orders_posts(port_)) port_.flush(cells_.state.home);
      return leave_queue();
    }
    if (in_a_row_ < handovers_)
      return pass(succ, grant(shift_grant::handover)
                            .with(shift_grant::epoch, epoch_)
                            .with(shift_grant::in_a_row, in_a_row_ + 1));
    const rma::word change = change_of_epoch() + format_.one_release();
    const rma::word now = rma::fetch_add_now(port_, cells_.state, change) + change;
    pass(succ, grant(shift_grant::mode_changed)
                   .with(shift_grant::epoch, format::get(now, format::epoch))
                   .with(shift_grant::releases, format_.releases_without_readers(now)));
  }

 private:
  using format = shift_format;

  // The words of a queue node. A free one is all zero (C25).
  static constexpr std::uint32_t next = 0;     // the successor's queue node, or null_ref
  static constexpr std::uint32_t granted = 1;  // a shift_grant

  [[nodiscard]] static constexpr rma::backoff poll_schedule() { return {200, 20'000}; }
  [[nodiscard]] static shift_grant grant(rma::word kind) {
    return shift_grant{}.with(shift_grant::kind, kind);
  }

  // The first writer of the queue: no reader enters any more, and those that are in leave.
  void be_head() {
    const rma::word before = rma::fetch_add_now(port_, cells_.state, format::one(format::writer));
    rma::ensure(format::get(before, format::writer) == 0, "a queue has one head");
    epoch_ = format::get(before, format::epoch);
    in_a_row_ = 0;
    if (format::get(before, format::readers) != 0)
      await_releases(format_.releases_without_readers(before));
  }

  // The number cannot pass by: readers that come now wait, and writers wait for us.
  void await_releases(rma::word wanted) {
    port_.poll(
        cells_.state, [wanted, f = format_](rma::word now) { return f.releases(now) == wanted; },
        poll_schedule());
  }

  /// The number to add to the state to change the epoch. The holder knows the epoch, since no other
  /// participant changes it; so the sum has no carry.
  [[nodiscard]] rma::word change_of_epoch() const {
    return epoch_ == 0 ? format::one(format::epoch) : 0 - format::one(format::epoch);
  }

  // The writer has released the lock, or has not got it. It resets the tail, or makes its successor
  // the head.
  void leave_queue() {
    const rma::word own = rma::to_word(node_.first);
    if (rma::compare_swap_now(port_, cells_.tail, own, rma::null_ref) == own)
      return me_.give_back(node_);
    // A participant swapped itself in behind us and is about to write its link.
    rma::ensure(me_.has_taken(node_), "only the holder releases");
    pass(port_.await(node_[next], rma::differs_from(rma::null_ref)), grant(shift_grant::head));
  }

  /// Flushed, else the successor would wait until we flush something else.
  void pass(rma::word succ, shift_grant what) {
    port_.store(node_[next], rma::null_ref);
    rma::put_now(port_, word_of(succ, granted), what.bits());
    me_.give_back(node_);
  }

  [[nodiscard]] static constexpr rma::plain_cell word_of(rma::word node, std::uint32_t word) {
    return rma::queue_node{rma::from_word<rma::plain_cell>(node)}[word];
  }
  // Flushed, else a waiter would see it only when we flush something else.
  void add_now(rma::word value) {
    port_.add(cells_.state, value);
    port_.flush(cells_.state.home);
  }

  rma::participant<Port>& me_;
  Port& port_;
  cells cells_;
  shift_format format_;
  rma::word handovers_;
  rma::word epoch_ = 0;     // of the state, while we are in
  rma::word in_a_row_ = 0;  // handovers since readers could enter
  rma::queue_node node_;
};

}  // namespace lockflight::lock
