// A queue of participants that share memory, after Mellor-Crummey and Scott, whose waiters may give
// up: what stands behind the word of a node's lock (flight/node_lock.hpp).
//
// Who gives up leaves its line in the queue, marked, for whoever finds it there to take out, as in
// the abortable queue locks of Scott and Scherer ("Scalable Queue-Based Spin Locks with Timeout",
// PPoPP 2001) and of Chabbi and others ("Efficient Abortable-locking Protocol for Multi-level NUMA
// Systems", PPoPP 2017); if it comes again before, it has its old place. Who leaves is told by a
// compare-swap; the link to a line says whether its owner may. The head has nobody before it who
// could take it out: it leaves the queue, and the next one is the head.
//
// Order: first come, first served. Network operations: none.
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
  /// `tail` is the line of the last in the queue, or null_ref.
  abortable_queue(rma::participant<Port>& me, rma::cpu_cell tail)
      : me_(me), port_(me.port()), tail_(rma::resolve(port_, tail)) {}

  /// Who is told that it is the head now is told this, or a greater word.
  static constexpr rma::word least_told = 3;

  /// Whether nobody is in it; who has given up may be.
  [[nodiscard]] bool is_empty() { return port_.load(tail_) == rma::null_ref; }
  /// For the head: whether somebody is behind it, given up or not.
  [[nodiscard]] bool has_behind(rma::line line) {
    // The own line first: it says mostly, and who comes has the tail's.
    return port_.load(line[next]) != rma::null_ref || port_.load(tail_) != rma::to_word(line.first);
  }

  /// Stands in the queue until it has come to its head. `told` is what its predecessor has, or 0 if
  /// there was none. 1 CPU swap, and behind another one 2 stores. Nothing if time was over first.
  template <class Until>
  [[nodiscard]] std::optional<rma::line> stand(Until until, rma::word& told) {
    constexpr bool leaves = !std::is_same_v<Until, rma::forever>;
    const auto [line, stands] = line_to_stand_in();
    const rma::word own = rma::to_word(line.first);
    told = waiting;
    if (!stands) {
      const rma::word pred = port_.cpu_swap(tail_, own);
      if (pred == rma::null_ref) return line;
      port_.store(line_of(pred)[next], leaves ? own | may_give_up : own);
    }
    if (!rma::await(port_, state_of(line), rma::differs_from(waiting), until, told)) {
      if (give_up(line)) return std::nullopt;
      told = port_.load(state_of(line));
    }
    port_.store(state_of(line), waiting);
    return line;
  }

  /// For the head, which leaves: tells the next one that has not given up. False if there is none.
  /// 1 load and 2 stores, or to who may give up 1 CPU compare-swap in place of the last store; with
  /// nobody behind 1 load and 1 CPU compare-swap.
  [[nodiscard]] bool leave(rma::line line, rma::word what) {
    const bool told = tell_next(line, what);
    me_.give_back(line);
    return told;
  }

 private:
  // The words of a participant's line. A free line is all zero (C25).
  static constexpr std::uint32_t next = 0;       // a `link`, or null_ref
  static constexpr std::uint32_t stands_in = 2;  // whose owner has left: the queue's tail
  [[nodiscard]] static rma::cpu_cell state_of(rma::line line) {
    const rma::plain_cell state = line[rma::participant<Port>::in_queue];
    return {state.home, state.index};
  }
  // What the state of a line says; else it is at the queue's head, and has been told so.
  static constexpr rma::word waiting = 0;
  static constexpr rma::word left = 1;  // its owner has given up
  static constexpr rma::word out = 2;   // and somebody takes it out

  // The line behind one: its first cell, whose index leaves this bit free.
  static constexpr rma::word may_give_up = 1;
  static_assert(rma::line_words % 2 == 0);
  [[nodiscard]] static rma::line line_of(rma::word link) {
    return {rma::from_word<rma::plain_cell>(link & ~may_give_up)};
  }

  [[nodiscard]] bool tell_next(rma::line line, rma::word what) {
    rma::word succ = take_out(line);
    while (succ != rma::null_ref) {
      const rma::line there = line_of(succ);
      if ((succ & may_give_up) == 0) {
        port_.store(state_of(there), what);
        return true;
      }
      if (port_.cpu_compare_swap(state_of(there), waiting, what) == waiting) return true;
      if (port_.cpu_compare_swap(state_of(there), left, out) != left) continue;  // it is back
      succ = take_out(there);
      port_.store(there[stands_in], 0);
      port_.store(state_of(there), waiting);  // the owner's again, and all zero
    }
    return false;
  }

  // The queue's first line: returns its link, or null_ref if it was the last, and that is zero
  // again.
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

  // False if we have come to the head meanwhile.
  [[nodiscard]] bool give_up(rma::line line) {
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

  rma::participant<Port>& me_;
  Port& port_;
  rma::resolved<Port, rma::cpu_cell> tail_;
  std::optional<rma::line> left_;  // in the queue, when we gave up; the participant has it
};

}  // namespace lockflight::lock
