// The lock of a node: what the participants that share memory settle among themselves, with their
// CPU's atomics and without the network. flight is one of these a node, and a queue of the nodes
// above them.
//
// Source: fissile locks (Dice and Kogan, "Fissile Locks", NETYS 2020): a word that anybody may
// take, and behind it an MCS queue whose head competes for the word. Who comes while the word is
// free goes past the queue, so a free lock costs one atomic and a store; who waits is not woken
// only to find that it must wait for somebody who does not run.
//
// What differs: the holder counts how many came past the queue's head, and after `barge` of them
// keeps the word for the head; so the bound is exact and nobody becomes impatient by the clock. And
// the word may say that the lock above comes with it (`with_top`).
//
// To let others come past pays where they come again at once, while the word is in their cache.
// Where nobody does it is kept for the head all the time, and whoever has come there stays in the
// queue as long as it has the word, to hand it over to the one behind it: the queue is an MCS lock
// then. After `handovers` in a row comes a trial: the word is for anybody to take. If who puts it
// down takes it again before others do (`retaken`) it stays so (`barging`), until a head finds that
// nobody does that any more.
//
// Order: first come, first served in the queue; its head is passed by at most `barge` others.
// Network operations: none.
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
  /// Of a line at a rank of the node.
  struct cells {
    rma::cpu_cell word;
    rma::cpu_cell tail;

    explicit cells(rma::plain_cell line)
        : word{line.home, line.index}, tail{line.home, line.index + 1} {}
  };

  struct bounds {
    std::int64_t barge;      // past the queue's head
    std::int64_t handovers;  // in a row, until others may come past; 0: they always may
  };

  node_lock(rma::participant<Port>& me, const cells& where, const bounds& set)
      : port_(me.port()),
        word_(rma::resolve(port_, where.word)),
        queue_(me, where.tail),
        barge_(static_cast<int>(set.barge)),
        handovers_(static_cast<int>(set.handovers)),
        barging_(handovers_ == 0) {}

  /// Takes the word; `kept` is what the last holder has kept in it. 1 CPU compare-swap if it is
  /// free, nobody waits and it says what we expect, else 2. False if time was over first.
  template <class Until>
  [[nodiscard]] bool lock(Until until, node_word& kept) {
    if (!take() && !queue(until)) return false;
    kept = found_;
    return true;
  }

  /// The same, if the word is free for all.
  [[nodiscard]] bool try_lock(node_word& kept) {
    if (!take()) return false;
    kept = found_;
    return true;
  }

  /// The same, if it has the lock above. 1 load, and 1 CPU compare-swap if so.
  [[nodiscard]] bool take_with_top(node_word& kept) {
    const rma::word found = port_.load(word_);
    if (!node_word::from(found).with_top || !take_free(found)) return false;
    kept = found_;
    return true;
  }

  /// What lock does, but past nobody who stands in the queue.
  template <class Until>
  [[nodiscard]] bool lock_in_turn(Until until, node_word& kept) {
    if (!queue(until)) return false;
    kept = found_;
    return true;
  }

  /// Whether the holder came past the queue, and how many will have when it puts the word down.
  [[nodiscard]] bool barged() const { return barged_; }
  [[nodiscard]] rma::word passed_by() const {
    return barged_ ? std::min<rma::word>(found_.passed_by + 1, barge_) : 0;
  }
  /// For whoever puts it down in place of another one; where there are no handovers.
  void stand_in(rma::word passed_by) {
    barged_ = passed_by > 0;
    found_ = found_.with_passed_by(passed_by - (barged_ ? 1 : 0));
  }

  /// For the holder: whether somebody stands in the queue, and has not given up yet.
  [[nodiscard]] bool somebody_waits() {
    return stays_ ? queue_.has_behind(*stays_) : !queue_.is_empty();
  }

  /// Lets the word go while nobody waits, or after an attempt that failed, with a note for whoever
  /// takes it next. 1 store; 1 CPU compare-swap more if we stand in the queue.
  void let_go(std::uint16_t note = 0) {
    const node_word kept = node_word{}.with_note(note);
    if (stays_ && hand_over(kept)) return;
    put_down_ = held;
    free_ = kept.bits();
    port_.store(word_, free_);
  }

  /// Lets the word go while somebody waits: hands it over, or puts it down for anybody to take or
  /// for the queue's head alone. 1 store; 1 CPU compare-swap instead to who may give up.
  void pass(node_word kept) {
    if (!stays_ || !hand_over(kept)) static_cast<void>(put_down(kept));
  }

  /// The same for what must not be left to nobody, as when all give up before they see it: then the
  /// word is ours again, and this false. 1 store and a fence, or what it costs to hand it over.
  [[nodiscard]] bool pass_to_somebody(node_word kept) {
    if (stays_ && hand_over(kept)) return true;
    const rma::word passed = put_down(kept);
    port_.fence();  // who leaves the queue empty looks at the word after that (C13)
    return somebody_waits() || port_.cpu_compare_swap(word_, passed, held) != passed;
  }

 private:
  static constexpr rma::word held = node_word{.held = true}.bits();

  // What the one behind the queue's head is told: that it is the head now, or what is kept in a
  // word that is handed over to it, marked as reserved, with the handovers that are left
  // (`passed_by`).
  static constexpr rma::word be_head = abortable_queue<Port>::least_told;
  static_assert(node_word{.reserved = true}.bits() > be_head);

  // Takes the word past the queue, if it is free for that.
  [[nodiscard]] bool take() {
    const rma::word found = port_.cpu_compare_swap(word_, free_, held);
    if (found != free_) return take_free(found);
    found_ = node_word::from(found);
    barged_ = true;
    return true;
  }
  [[nodiscard]] bool take_free(rma::word found) {
    node_word w = node_word::from(found);
    // What is kept for the head of a queue that nobody is left in is for anybody.
    if (w.held || (w.reserved && !queue_.is_empty()) ||
        port_.cpu_compare_swap(word_, found, held) != found)
      return false;
    w.retaken = w.retaken || found == put_down_;
    found_ = w;
    barged_ = true;
    // Who had nobody behind says nothing of who comes past, but may have left a note.
    if (w.is_passed())
      barging_ = w.barging;
    else
      free_ = found;
    return true;
  }

  rma::word put_down(node_word kept) {
    kept.barging = barging_;
    kept = kept.with_passed_by(kept.barging ? passed_by() : 0);
    kept.retaken = kept.passed_by > 0 && found_.retaken;
    kept.reserved = !kept.barging || kept.passed_by >= barge_;
    const rma::word passed = kept.bits();
    if (handovers_ > 0) put_down_ = passed;
    port_.store(word_, passed);
    return passed;
  }

  // For the holder that stands in the queue: out of it. True if the word is somebody else's then;
  // if not whoever is behind us is the head now.
  [[nodiscard]] bool hand_over(node_word kept) {
    const rma::line line = *std::exchange(stays_, std::nullopt);
    put_down_ = held;
    barging_ = handovers_left_ == 0;
    if (barging_) {
      static_cast<void>(queue_.leave(line, be_head));
      return false;
    }
    kept.reserved = true;
    kept = kept.with_passed_by(static_cast<rma::word>(handovers_left_ - 1));
    return queue_.leave(line, kept.bits());
  }

  // Not inlined: who finds the word free goes by in a few instructions.
  template <class Until>
  [[nodiscard, gnu::noinline]] bool queue(Until until) {
    rma::word told = 0;
    const std::optional<rma::line> line = queue_.stand(until, told);
    if (!line) return false;
    barged_ = false;
    if (told > be_head) {
      found_ = node_word::from(told);
      handovers_left_ = static_cast<int>(found_.passed_by);
      found_.passed_by = 0;
      barging_ = false;
      stays_ = line;
      return true;
    }
    const bool got = compete(until, told == be_head);
    if (got && !barging_ && handovers_ > 0) {
      handovers_left_ = handovers_;
      stays_ = line;
      return true;
    }
    // Out of the queue at once: its next head may compete, and the tail says whether one is there.
    return queue_.leave(*line, be_head) || got ? got : take_what_is_left();
  }

  // The queue's head. Where others come past it looks now and then instead of awaiting: a look
  // takes the word's line away from those who pass by, and they are bounded by their number.
  template <class Until>
  [[nodiscard]] bool compete(Until until, bool was_told) {
    const bool alone = !was_told && !barging_;  // nobody came by the last time
    if (alone && !await_free(until)) return false;
    rma::backoff b(alone ? 50 : 300, 1'200);
    // That nobody has come by says something only if there was the time: a trial begins with it.
    bool had_time = alone;
    if (handovers_ > 0 && was_told) {
      port_.pause(b.next());
      had_time = true;
    }
    for (;; port_.pause(b.next())) {
      if (take_as_head(port_.load(word_))) break;
      if (rma::is_over(port_, until)) return false;
      had_time = true;
    }
    if (handovers_ > 0 && tells(found_, had_time)) barging_ = found_.retaken;
    return true;
  }
  template <class Until>
  [[nodiscard]] bool await_free(Until until) {
    const auto is_free = [](rma::word w) { return !node_word::from(w).held; };
    rma::word now = 0;
    return rma::await(port_, word_, is_free, until, now);
  }
  // Whether what the head has found says if it pays to come past. Who has just come past for the
  // first time may come again.
  [[nodiscard]] static bool tells(const node_word& found, bool had_time) {
    return found.passed_by == 0 ? had_time : found.retaken || found.passed_by > 1;
  }
  [[nodiscard]] bool take_as_head(rma::word found) {
    found_ = node_word::from(found);
    return !found_.held && port_.cpu_compare_swap(word_, found, held) == found;
  }

  // Who gives up last must not leave a free word with something in it behind (pass_to_somebody): a
  // look after the tail was changed (C14).
  [[nodiscard]] bool take_what_is_left() {
    const rma::word found = port_.load(word_);
    return node_word::from(found).is_passed() && take_as_head(found);
  }

  Port& port_;
  rma::resolved<Port, rma::cpu_cell> word_;  // a node_word
  abortable_queue<Port> queue_;
  int barge_;
  int handovers_;
  rma::word free_ = 0;              // the word, as far as we know, while nobody has it or waits
  rma::word put_down_ = held;       // if we put it down the last time that we had it, while others
                                    // waited; without handovers never
  node_word found_;                 // when we took the word
  bool barged_ = false;             // past the queue
  bool barging_;                    // others come past it, for all that we have seen
  std::optional<rma::line> stays_;  // in the queue, while we have the word
  int handovers_left_ = 0;          // of that word, before the next trial
};

}  // namespace lockflight::lock
