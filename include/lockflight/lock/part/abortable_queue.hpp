// An MCS queue of participants that share memory, whose waiters may give up. It is the queue behind
// the word of a node's lock (flight/node_lock.hpp).
//
// Source: Mellor-Crummey and Scott 1991. A waiter that gives up marks its queue node and leaves it
// in the queue, and the participant that reaches the node there takes it out, as in the abortable
// queue locks of Scott and Scherer ("Scalable Queue-Based Spin Locks with Timeout", PPoPP 2001) and
// of Chabbi and others ("Efficient Abortable-locking Protocol for Multi-level NUMA Systems", PPoPP
// 2017).
//
// Invariants:
// - A waiter that may give up says so in the link to its queue node; a value is passed to it by
//   compare-swap. To any other waiter it is passed by a store.
// - A participant that comes back while its abandoned node is still in the queue has its old place
//   again.
// - The head has no predecessor that could take out its node, so it cannot give up: it leaves the
//   queue, and its successor is the head.
//
// Order: first come, first served.
//
// Network operations: none. CPU operations:
// | enter, queue empty                     | 1 swap                          |
// | enter, behind a predecessor            | 1 swap, 2 stores                |
// | leave, to a successor                  | 1 load, 2 stores                |
// | leave, to a successor that may give up | 1 load, 1 store, 1 compare-swap |
// | leave, no successor                    | 1 load, 1 compare-swap          |
#pragma once

#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

#include "lockflight/rma/participant.hpp"

namespace lockflight::lock {

template <rma::port Port>
class abortable_queue {
 public:
  /// `tail` is the queue node of the last participant in the queue, or null_ref.
  abortable_queue(rma::participant<Port>& me, rma::cpu_cell tail)
      : me_(me), port_(me.port()), tail_(rma::resolve(port_, tail)) {}

  /// The smallest value that can be passed to a successor.
  static constexpr rma::word least_passed = 3;

  /// True if no queue node is in the queue, abandoned ones included.
  [[nodiscard]] bool is_empty() { return port_.load(tail_) == rma::null_ref; }
  /// For the head: whether a queue node is behind its own, abandoned or not.
  [[nodiscard]] bool has_successor(rma::queue_node node) {
    // Reads the own node first: its link is mostly set, and arriving participants use the tail's
    // cache line.
    return port_.load(node[next]) != rma::null_ref || port_.load(tail_) != rma::to_word(node.first);
  }

  /// Enters the queue and waits until it is at its head. `passed` is the value that the predecessor
  /// passed, 0 if there was none. Returns nothing if time was over first.
  template <class Until>
  [[nodiscard]] std::optional<rma::queue_node> enter(Until until, rma::word& passed) {
    constexpr bool leaves = !std::is_same_v<Until, rma::forever>;
    const auto [node, is_in] = node_to_enter_with();
    const rma::word own = rma::to_word(node.first);
    passed = waiting;
    if (!is_in) {
      const rma::word pred = port_.cpu_swap(tail_, own);
      if (pred == rma::null_ref) return node;
      port_.store(node_of(pred)[next], leaves ? own | may_give_up : own);
    }
    if (!rma::await(port_, state_of(node), rma::differs_from(waiting), until, passed)) {
      if (give_up(node)) return std::nullopt;
      passed = port_.load(state_of(node));
    }
    port_.store(state_of(node), waiting);
    return node;
  }

  /// For the head, which leaves the queue: passes `what` to the first successor that has not given
  /// up. False if there is none.
  [[nodiscard]] bool leave(rma::queue_node node, rma::word what) {
    const bool passed = pass_on(node, what);
    me_.give_back(node);
    return passed;
  }

 private:
  // The words of a queue node. A free one is all zero (C25).
  static constexpr std::uint32_t next = 0;          // a `link`, or null_ref
  static constexpr std::uint32_t abandoned_in = 2;  // of an abandoned node: the tail of its queue
  [[nodiscard]] static rma::cpu_cell state_of(rma::queue_node node) {
    const rma::plain_cell state = node[rma::participant<Port>::in_queue];
    return {state.home, state.index};
  }
  // The state of a queue node. Any other value is the one that was passed to its owner.
  static constexpr rma::word waiting = 0;
  static constexpr rma::word left = 1;  // the owner has given up
  static constexpr rma::word out =
      2;  // the owner has given up, and another participant is taking the node out

  // A link is the first cell of the next queue node, whose index leaves this bit free.
  static constexpr rma::word may_give_up = 1;
  static_assert(rma::line_words % 2 == 0);
  [[nodiscard]] static rma::queue_node node_of(rma::word link) {
    return {rma::from_word<rma::plain_cell>(link & ~may_give_up)};
  }

  [[nodiscard]] bool pass_on(rma::queue_node node, rma::word what) {
    rma::word succ = take_out(node);
    while (succ != rma::null_ref) {
      const rma::queue_node there = node_of(succ);
      if ((succ & may_give_up) == 0) {
        port_.store(state_of(there), what);
        return true;
      }
      if (port_.cpu_compare_swap(state_of(there), waiting, what) == waiting) return true;
      if (port_.cpu_compare_swap(state_of(there), left, out) != left)
        continue;  // its owner is back
      succ = take_out(there);
      port_.store(there[abandoned_in], 0);
      port_.store(state_of(there), waiting);  // the node is the owner's again, and all zero
    }
    return false;
  }

  // Takes the queue's first node out. Returns its link, or null_ref if it was the last node. The
  // link is 0 afterwards.
  [[nodiscard]] rma::word take_out(rma::queue_node node) {
    const rma::word own = rma::to_word(node.first);
    rma::word succ = port_.load(node[next]);
    if (succ == rma::null_ref) {
      if (port_.cpu_compare_swap(tail_, own, rma::null_ref) == own) return rma::null_ref;
      succ = port_.await(node[next], rma::differs_from(rma::null_ref));
    }
    port_.store(node[next], rma::null_ref);
    return succ;
  }

  // False if a value has been passed to us meanwhile.
  [[nodiscard]] bool give_up(rma::queue_node node) {
    port_.store(node[abandoned_in], rma::to_word(tail_));
    if (port_.cpu_compare_swap(state_of(node), waiting, left) == waiting) {
      me_.abandon(node);
      left_ = node;
      return true;
    }
    port_.store(node[abandoned_in], 0);
    return false;
  }

  // A queue node to enter with. The second result is true if it is the node that we abandoned in
  // this queue, and it is still there.
  [[nodiscard]] std::pair<rma::queue_node, bool> node_to_enter_with() {
    const std::optional<rma::queue_node> mine = std::exchange(left_, std::nullopt);
    if (!mine || port_.load((*mine)[abandoned_in]) != rma::to_word(tail_) || !me_.reclaim(*mine))
      return {me_.take_queue_node(), false};
    const rma::word was = port_.cpu_compare_swap(state_of(*mine), left, waiting);
    if (was == left) port_.store((*mine)[abandoned_in], 0);
    if (was != out) return {*mine, was == left};
    // Another participant is taking it out. We do not wait for that: we have no place meanwhile.
    me_.abandon(*mine);
    return {me_.take_queue_node(), false};
  }

  rma::participant<Port>& me_;
  Port& port_;
  rma::resolved<Port, rma::cpu_cell> tail_;
  std::optional<rma::queue_node> left_;  // abandoned in the queue when we gave up
};

}  // namespace lockflight::lock
