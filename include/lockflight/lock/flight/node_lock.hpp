// The lock of a node: participants that share memory agree by their CPU's atomics, without the
// network. flight has one on each node.
//
// Source: fissile locks (Dice and Kogan, "Fissile Locks", NETYS 2020): a word that anybody may
// take, and behind it an MCS queue whose head competes for the word. An arrival that finds the word
// free barges past the queue, so a free lock costs one atomic and a store.
//
// Differences: (1) The holder counts how often the head was overtaken, and after `barge` times
// reserves the word for the head (I3): the bound is exact and needs no clock. (2) Barging pays
// where the same participant acquires again at once, while the word is in its cache. If the head
// finds that no participant barges, it stays in the queue while it holds the word, and hands the
// word over to its successor, as MCS does. After `handovers` handovers in a row there is a trial:
// any participant may take the word once.
// (3) A released word carries a value, and may carry the lock above (`with_top`). (4) A head that
// has competed for `patience` sets a mark and sleeps; a holder that sees it reserves the word (I3).
//
// Order: first come, first served in the queue, whose head is overtaken by at most `barge`
// arrivals. Network operations: none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "lockflight/lock/flight/node_word.hpp"
#include "lockflight/lock/part/abortable_queue.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::lock {

template <rma::port Port>
class node_lock {
 public:
  /// The lock's cells on a line at a rank of the node.
  struct cells {
    rma::cpu_cell word;
    rma::cpu_cell tail;
    rma::cpu_cell impatient;  // the line's last word; used only if `patience` is not 0

    explicit cells(rma::plain_cell line)
        : word{line.home, line.index},
          tail{line.home, line.index + 1},
          impatient{line.home, line.index + rma::line_words - 1} {}
  };

  struct bounds {
    std::int64_t barge;      // past the queue's head
    std::int64_t handovers;  // in a row, until a trial; 0: barging is always allowed
    std::int64_t patience;   // of the queue's head, in nanoseconds; 0: only `barge` counts
  };

  node_lock(rma::participant<Port>& me, const cells& where, const bounds& set)
      : port_(me.port()),
        word_(rma::resolve(port_, where.word)),
        queue_(me, where.tail),
        impatient_(where.impatient),
        patience_(static_cast<std::uint64_t>(set.patience)),
        barge_(static_cast<rma::word>(set.barge)),
        handovers_(static_cast<int>(set.handovers)),
        barging_(handovers_ == 0) {}

  /// Takes the word; `passed` is the value that its last holder left in it. 1 CPU compare-swap if
  /// it is free and nobody waits, else 2. Returns false if `until` is over first.
  template <class Until>
  [[nodiscard]] bool lock(Until until, node_word& passed) {
    if (!take() && !wait(until)) return false;
    passed = found_;
    return true;
  }

  /// The same, if the word is free for all.
  [[nodiscard]] bool try_lock(node_word& passed) {
    if (!take()) return false;
    passed = found_;
    return true;
  }

  /// For the holder: whether a participant stands in the queue, and has not given up yet.
  [[nodiscard]] bool has_waiters() {
    return node_ ? queue_.has_successor(*node_) : !queue_.is_empty();
  }

  /// Releases the word while nobody waits. 1 store; 1 CPU compare-swap more if the holder stands in
  /// the queue.
  void release() {
    if (!node_ || !hand_over({})) port_.store(word_, free);
  }

  /// Releases the word while others wait: hands it over, or leaves it to anybody or to the queue's
  /// head alone. 1 store; 1 CPU compare-swap instead if the successor may give up.
  void pass(node_word to) {
    if (!node_ || !hand_over(to)) static_cast<void>(leave(to));
  }

  /// Passes a value that some waiter must receive. If all waiters give up before one has seen it,
  /// takes the word back and returns false. 1 store and a fence, or what it costs to hand the word
  /// over.
  [[nodiscard]] bool pass_to_waiter(node_word to) {
    if (node_ && hand_over(to)) return true;
    const rma::word passed = leave(to);
    port_.fence();  // a waiter that leaves the queue empty reads the word after that (C13): I4
    return has_waiters() || port_.cpu_compare_swap(word_, passed, held) != passed;
  }

 private:
  static constexpr rma::word free = node_word{}.bits();  // and nobody waits
  static constexpr rma::word held = node_word{}.with(node_word::held).bits();

  // The queue's head passes one of two values to its successor: `be_head`, or a word that it hands
  // over. That word is marked `reserved`, and its field `overtaken` holds how many handovers are
  // left.
  static constexpr rma::word be_head = abortable_queue<Port>::least_passed;
  static_assert(node_word{}.with(node_word::reserved).bits() > be_head);

  // Takes the word past the queue, if it is free for that (I3).
  [[nodiscard]] bool take() {
    const rma::word found = port_.cpu_compare_swap(word_, free, held);
    const node_word w = node_word::from(found);
    if (found != free) {
      // A word that is reserved for the queue's head may be taken by any participant if the queue
      // is empty.
      if (w.has(node_word::held) || (w.has(node_word::reserved) && !queue_.is_empty()) ||
          port_.cpu_compare_swap(word_, found, held) != found)
        return false;
      barging_ = w.has(node_word::barging);
    }
    found_ = w;
    barged_ = true;
    return true;
  }

  // Frees the word. It is reserved for the queue's head if that was overtaken often enough (I3).
  rma::word leave(node_word to) {
    rma::word overtaken = 0;
    if (barging_ && barged_) overtaken = std::min(found_.get(node_word::overtaken) + 1, barge_);
    to = to.with(node_word::barging, barging_ ? 1 : 0)
             .with(node_word::overtaken, overtaken)
             .with(node_word::reserved, !barging_ || overtaken >= barge_ || head_is_impatient());
    port_.store(word_, to.bits());
    return to.bits();
  }
  [[nodiscard]] bool head_is_impatient() { return patience_ != 0 && port_.load(impatient_) != 0; }

  // The holder leaves the queue. Returns true if it has handed the word to its successor; if not,
  // the successor is the queue's head now.
  [[nodiscard]] bool hand_over(node_word to) {
    const rma::queue_node node = *std::exchange(node_, std::nullopt);
    barging_ = handovers_left_ == 0;
    if (barging_) {
      static_cast<void>(queue_.leave(node, be_head));
      return false;
    }
    to = to.with(node_word::reserved)
             .with(node_word::overtaken, static_cast<rma::word>(handovers_left_ - 1));
    return queue_.leave(node, to.bits());
  }

  // Not inlined: an arrival that finds the word free then executes few instructions.
  template <class Until>
  [[nodiscard, gnu::noinline]] bool wait(Until until) {
    rma::word passed = 0;
    const std::optional<rma::queue_node> node = queue_.enter(until, passed);
    if (!node) return false;
    barged_ = false;
    if (passed > be_head) {
      found_ = node_word::from(passed);
      handovers_left_ = static_cast<int>(found_.get(node_word::overtaken));
      found_ = found_.without(node_word::overtaken);
      barging_ = false;
      node_ = node;
      return true;
    }
    const bool got = compete(until, passed == be_head);
    // Only the head writes `impatient`. It clears the mark before another participant becomes the
    // head, also a mark that an earlier head has left.
    if (head_is_impatient()) port_.store(impatient_, 0);
    if (got && !barging_) {
      handovers_left_ = handovers_;
      node_ = node;
      return true;
    }
    // Leaves the queue at once, so that the next head can compete, and so that the tail says
    // whether there is one.
    return queue_.leave(*node, be_head) || got ? got : take_what_is_left();
  }

  // The queue's head competes for the word. If others barge it polls with pauses instead of
  // awaiting: each read takes the word's cache line away from the participants that barge, and the
  // number of their acquires is bounded.
  template <class Until>
  [[nodiscard]] bool compete(Until until, bool had_predecessor) {
    bool had_time = !had_predecessor && !barging_;  // nobody barged at our last wait
    rma::deadline end;
    if (patience_ != 0) end = port_.deadline_in(patience_);
    if (had_time && !await_free_first(until, end)) return false;
    rma::backoff b(had_time ? 50 : 300, 1'200);
    // The absence of barging counts only if there was enough time to barge.
    if (handovers_ > 0 && had_predecessor) {
      port_.pause(b.next());
      had_time = true;
    }
    for (;; port_.pause(b.next())) {
      if (take_as_head(port_.load(word_))) break;
      if (rma::is_over(port_, until)) return false;
      had_time = true;
      if (patience_ == 0 || !port_.is_over(end)) continue;
      if (!compete_asleep(until)) return false;
      break;
    }
    // A single overtaking is not enough to conclude that others barge.
    if (const rma::word overtaken = found_.get(node_word::overtaken); handovers_ > 0)
      barging_ = overtaken > 1 || (barging_ && (overtaken == 1 || !had_time));
    return true;
  }
  // The queue's head sets the mark and sleeps, once its patience is over. A holder that has not
  // seen the mark may let one more arrival barge; the next holder sees it.
  template <class Until>
  [[nodiscard, gnu::noinline]] bool compete_asleep(Until until) {
    port_.store(impatient_, 1);
    for (rma::word now = 0;; port_.pause(0)) {
      if (!await_free(until, now)) return false;
      if (take_as_head(now)) return true;
    }
  }
  // Waits until the word is free or the head's patience is over. Returns false if `until` is over
  // first.
  template <class Until>
  [[nodiscard]] bool await_free_first(Until until, rma::deadline patience) {
    rma::word now = 0;
    if (patience_ == 0) return await_free(until, now);
    return await_free(rma::earlier(until, patience), now) || !rma::is_over(port_, until);
  }
  template <class Until>
  [[nodiscard]] bool await_free(Until until, rma::word& now) {
    const auto is_free = [](rma::word w) { return !node_word::from(w).has(node_word::held); };
    return rma::await(port_, word_, is_free, until, now);
  }
  [[nodiscard]] bool take_as_head(rma::word found) {
    found_ = node_word::from(found);
    return !found_.has(node_word::held) && port_.cpu_compare_swap(word_, found, held) == found;
  }

  // The last waiter that gives up takes a word that was passed to the waiters (pass_to_waiter). It
  // reads the word after it has changed the tail (C14): I4.
  [[nodiscard]] bool take_what_is_left() {
    const rma::word found = port_.load(word_);
    return node_word::from(found).is_passed() && take_as_head(found);
  }

  Port& port_;
  rma::resolved<Port, rma::cpu_cell> word_;  // a node_word
  abortable_queue<Port> queue_;
  rma::cpu_cell impatient_;  // not 0: the head has competed for longer than its patience
  std::uint64_t patience_;
  rma::word barge_;
  int handovers_;
  node_word found_;                      // when we took the word
  bool barged_ = false;                  // past the queue
  bool barging_;                         // others barge, as far as this handle has observed
  std::optional<rma::queue_node> node_;  // our queue node, while we hold and stand in the queue
  int handovers_left_ = 0;               // before the next trial
};

}  // namespace lockflight::lock
