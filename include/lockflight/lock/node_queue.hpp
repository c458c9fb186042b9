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
// Who gives up leaves its line in the queue, marked, for whoever finds it there to take out, as in
// the abortable queue locks of Scott and Scherer ("Scalable Queue-Based Spin Locks with Timeout",
// PPoPP 2001) and of Chabbi and others ("Efficient Abortable-locking Protocol for Multi-level NUMA
// Systems", PPoPP 2017); if it comes again before, it has its old place. The head has nobody before
// it who could take it out: it makes the next one the head.
//
// Order: first come, first served in the queue; its head is passed by at most `barge` others.
// Network operations: none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "lockflight/rma/participant.hpp"

namespace lockflight::lock {

/// The word of a node: who may take it, and, while it is free and somebody waits, what its last
/// holder keeps for the next one. Zeroed memory is free.
struct node_word {
  bool held = false;            ///< by a participant that has the lock above, or is fetching it
  bool with_top = false;        ///< free, and the node has the lock above
  bool reserved = false;        ///< free, for the queue's head alone
  std::uint16_t note = 0;       ///< the user's, below 2^13
  std::uint16_t passed_by = 0;  ///< others that have come past the queue's head
  std::uint16_t in_a_row = 0;   ///< acquires of this node since it has the lock above
  std::uint16_t left = 0;       ///< nodes that the lock above may still be passed to

  static constexpr int note_bits = 13;

  [[nodiscard]] static constexpr node_word from(rma::word w) {
    return {(w & 1) != 0,
            (w & 2) != 0,
            (w & 4) != 0,
            static_cast<std::uint16_t>(w >> 3 & ((1u << note_bits) - 1)),
            static_cast<std::uint16_t>(w >> 16),
            static_cast<std::uint16_t>(w >> 32),
            static_cast<std::uint16_t>(w >> 48)};
  }
  [[nodiscard]] constexpr rma::word bits() const {
    return rma::word{held} | rma::word{with_top} << 1 | rma::word{reserved} << 2 |
           rma::word{note} << 3 | rma::word{passed_by} << 16 | rma::word{in_a_row} << 32 |
           rma::word{left} << 48;
  }
  /// Whether the node has the lock above, or wants it: its flag in Peterson's algorithm.
  [[nodiscard]] static constexpr bool interested(rma::word w) { return (w & 3) != 0; }
};

/// The rank that hosts the words of rank's node for a lock whose home is given: the home for its
/// own node, so that all that is there lies together, else the node's leader.
[[nodiscard]] inline rma::rank_t node_host(const rma::topology& machine, rma::rank_t rank,
                                           rma::rank_t home) {
  return machine.same_node(rank, home) ? home : machine.leader_of(rank, machine.node_level());
}

template <rma::port Port>
class node_queue {
 public:
  /// Of a line at a rank of the node.
  struct cells {
    rma::cpu_cell word;
    rma::cpu_cell tail;

    explicit cells(rma::plain_cell line)
        : word{line.home, line.index}, tail{line.home, line.index + 1} {}
  };

  node_queue(rma::participant<Port>& me, const cells& where, std::int64_t barge)
      : me_(me),
        port_(me.port()),
        word_(rma::resolve(port_, where.word)),
        tail_(rma::resolve(port_, where.tail)),
        barge_(static_cast<int>(barge)) {}

  /// Takes the word; `kept` is what the last holder has kept in it. 1 CPU compare-swap if it is
  /// free and nobody waits. False if time was over first.
  template <class Until>
  [[nodiscard]] bool lock(Until until, node_word& kept) {
    rma::word found = 0;
    barged_ = take(found);
    if (!barged_ && !queue(until, found)) return false;
    kept = found_ = found == 0 ? node_word{} : node_word::from(found);  // mostly nothing to unpack
    return true;
  }

  /// The same, if the word is free for all.
  [[nodiscard]] bool try_lock(node_word& kept) {
    rma::word found = 0;
    barged_ = take(found);
    kept = found_ = node_word::from(found);
    return barged_;
  }

  /// The same, if it has the lock above. 1 load, and 1 CPU compare-swap if so.
  [[nodiscard]] bool take_with_top(node_word& kept) {
    const rma::word found = port_.load(word_);
    barged_ = node_word::from(found).with_top && take_free(found);
    kept = found_ = node_word::from(found);
    return barged_;
  }

  /// What lock does, but past nobody who stands in the queue.
  template <class Until>
  [[nodiscard]] bool lock_in_turn(Until until, node_word& kept) {
    rma::word found = 0;
    barged_ = false;
    const bool got = queue(until, found);
    kept = found_ = node_word::from(found);
    return got;
  }

  /// Whether the holder came past the queue, and how many will have when it puts the word down.
  [[nodiscard]] bool barged() const { return barged_; }
  [[nodiscard]] std::uint16_t passed_by() const {
    return barged_ ? static_cast<std::uint16_t>(std::min(found_.passed_by + 1, barge_)) : 0;
  }
  /// For whoever puts it down in place of another one.
  void stand_in(std::uint16_t passed_by) {
    barged_ = passed_by > 0;
    found_.passed_by = static_cast<std::uint16_t>(passed_by - (barged_ ? 1 : 0));
  }

  /// For the holder: whether somebody stands in the queue, and has not given up yet.
  [[nodiscard]] bool somebody_waits() { return port_.load(tail_) != rma::null_ref; }

  /// Lets the word go while nobody waits, or after an attempt that failed. 1 store.
  void let_go() { port_.store(word_, 0); }

  /// Lets the word go while somebody waits, for anybody to take, or, if too many have passed the
  /// queue's head by, for the head alone. 1 store.
  void pass(node_word kept) { static_cast<void>(put_down(kept)); }

  /// The same for what must not be left to nobody, as when all give up before they see it: then the
  /// word is ours again, and this false. 1 store and a fence.
  [[nodiscard]] bool pass_to_somebody(node_word kept) {
    const rma::word passed = put_down(kept);
    port_.fence();  // who leaves the queue empty looks at the word after that (C13)
    return somebody_waits() || port_.cpu_compare_swap(word_, passed, held) != passed;
  }

 private:
  static constexpr rma::word held = node_word{.held = true}.bits();

  // The words of a participant's line. A free line is all zero (C25).
  static constexpr std::uint32_t next = 0;       // the line behind ours, or null_ref
  static constexpr std::uint32_t stands_in = 2;  // whose owner has left: the queue's tail
  [[nodiscard]] static rma::cpu_cell state_of(rma::line line) {
    const rma::plain_cell state = line[rma::participant<Port>::in_queue];
    return {state.home, state.index};
  }
  // What the state of a line says.
  static constexpr rma::word waiting = 0;
  static constexpr rma::word head = 1;  // our predecessor has left the queue
  static constexpr rma::word left = 2;  // its owner has given up
  static constexpr rma::word out = 3;   // and somebody takes it out

  // Takes the word past the queue; `found` is what it was.
  [[nodiscard]] bool take(rma::word& found) {
    found = port_.cpu_compare_swap(word_, 0, held);
    return found == 0 || take_free(found);
  }
  [[nodiscard]] bool take_free(rma::word found) {
    const node_word w = node_word::from(found);
    // What is kept for the head of a queue that nobody is left in is for anybody.
    return !w.held && (!w.reserved || !somebody_waits()) &&
           port_.cpu_compare_swap(word_, found, held) == found;
  }

  rma::word put_down(node_word kept) {
    kept.passed_by = passed_by();
    kept.reserved = kept.passed_by >= barge_;
    port_.store(word_, kept.bits());
    return kept.bits();
  }

  // Not inlined: who finds the word free goes by in a few instructions.
  template <class Until>
  [[nodiscard, gnu::noinline]] bool queue(Until until, rma::word& found) {
    const std::optional<rma::line> line = become_head(until);
    if (!line) return false;
    bool got = compete(until, found);
    // Out of the queue at once: its next head may compete, and the tail says whether one is there.
    if (!make_next_head(*line) && !got) got = take_what_is_left(found);
    me_.give_back(*line);
    return got;
  }

  // Stands in the queue until it has come to its head. Nothing if time was over first.
  template <class Until>
  [[nodiscard]] std::optional<rma::line> become_head(Until until) {
    const auto [line, stands] = line_to_stand_in();
    const rma::word own = rma::to_word(line.first);
    if (!stands) {
      const rma::word pred = port_.cpu_swap(tail_, own);
      if (pred == rma::null_ref) return line;
      port_.store(rma::line{rma::from_word<rma::plain_cell>(pred)}[next], own);
    }
    rma::word now = 0;
    if (!rma::await(port_, state_of(line), rma::equals(head), until, now) && leave(line))
      return std::nullopt;
    port_.store(state_of(line), waiting);
    return line;
  }

  // False if we have come to the head meanwhile.
  [[nodiscard]] bool leave(rma::line line) {
    port_.store(line[stands_in], rma::to_word(tail_));
    if (port_.cpu_compare_swap(state_of(line), waiting, left) == waiting) {
      me_.abandon(line);
      left_ = line;
      return true;
    }
    port_.store(line[stands_in], 0);
    return false;
  }

  // A free line, or the one that we have left in the queue and that still stands there: second.
  [[nodiscard]] std::pair<rma::line, bool> line_to_stand_in() {
    const std::optional<rma::line> mine = std::exchange(left_, std::nullopt);
    if (!mine || port_.load((*mine)[stands_in]) != rma::to_word(tail_) || !me_.reclaim(*mine))
      return {me_.take_line(), false};
    const rma::word was = port_.cpu_compare_swap(state_of(*mine), left, waiting);
    if (was == left) port_.store((*mine)[stands_in], 0);
    if (was == out) port_.await(state_of(*mine), rma::equals(waiting));
    return {*mine, was == left};
  }

  // The queue's head. It looks now and then instead of awaiting: a look takes the word's line away
  // from those who pass by, and they are bounded by their number.
  template <class Until>
  [[nodiscard]] bool compete(Until until, rma::word& found) {
    for (rma::backoff b(300, 1'200);; port_.pause(b.next())) {
      found = port_.load(word_);
      if (!node_word::from(found).held && port_.cpu_compare_swap(word_, found, held) == found)
        return true;
      if (rma::is_over(port_, until)) return false;
    }
  }

  // For the head, which leaves the queue: makes the next one the head who has not given up. False
  // if the queue is empty.
  [[nodiscard]] bool make_next_head(rma::line line) {
    rma::word succ = take_out(line);
    while (succ != rma::null_ref) {
      const rma::line there{rma::from_word<rma::plain_cell>(succ)};
      if (port_.cpu_compare_swap(state_of(there), waiting, head) == waiting) return true;
      if (port_.cpu_compare_swap(state_of(there), left, out) != left) continue;  // it is back
      succ = take_out(there);
      port_.store(there[stands_in], 0);
      port_.store(state_of(there), waiting);  // the owner's again, and all zero
    }
    return false;
  }

  // The queue's first line: returns the one behind it, or null_ref, and its link is zero again.
  [[nodiscard]] rma::word take_out(rma::line line) {
    const rma::word own = rma::to_word(line.first);
    rma::word succ = port_.load(line[next]);
    if (succ == rma::null_ref) {
      if (port_.cpu_compare_swap(tail_, own, rma::null_ref) == own) return rma::null_ref;
      succ = port_.await(line[next], rma::differs_from(rma::null_ref));
    }
    port_.store(line[next], rma::null_ref);
    return succ;
  }

  // Who gives up last must not leave a free word with something in it behind (pass_to_somebody).
  [[nodiscard]] bool take_what_is_left(rma::word& found) {
    found = port_.load(word_);  // after the tail was changed (C14)
    return found != 0 && !node_word::from(found).held &&
           port_.cpu_compare_swap(word_, found, held) == found;
  }

  rma::participant<Port>& me_;
  Port& port_;
  rma::resolved<Port, rma::cpu_cell> word_;  // a node_word
  rma::resolved<Port, rma::cpu_cell> tail_;  // the line of the last in the queue, or null_ref
  int barge_;
  node_word found_;                // when we took the word
  bool barged_ = false;            // past the queue
  std::optional<rma::line> left_;  // in the queue, when we gave up; the participant has it
};

}  // namespace lockflight::lock
