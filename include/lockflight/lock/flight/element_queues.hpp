// The locks of a node and of the elements inside it: what the participants that share memory settle
// among themselves where a machine has levels below its nodes, as sockets. Where it has none, this
// is the node's lock (flight/node_lock.hpp) and nothing else.
//
// Source: lock cohorting (Dice, Marathe and Shavit, "Lock Cohorting: A General Technique for
// Designing NUMA Locks", PPoPP 2012), any number of levels, under the fast path of fissile locks
// (Dice and Kogan, "Fissile Locks", NETYS 2020).
//
// Each element has a word and a queue of its own, a node_lock at its leader. Who finds the node's
// word free takes it past all queues, so a free lock costs what it costs without levels. Who does
// not takes the word of its smallest element, and with it stands in the queue of the element
// around, up to the node's. Who leaves puts its element's word down with the note that it has all
// above it (`with_top`), if somebody waits there; whoever takes it then is done. Words are handed
// over in the smallest elements' queues, or the node's if there are no levels.
//
// So the one who takes a word above need not be the one who puts it down. What that one must know
// is in plain cells behind the element's tail: of the node and of each element around, how many
// have come past the queue's head, and `left`. They stay as they are while the element has what is
// above it. What changes is in its word: `in_a_row`, which is the node's, and `left`, the turns of
// its own queue that the element may have yet.
//
// Order: that of a node_lock in each; an element comes past nobody who stands in the queue around.
// Fairness bound: that of a node_lock in each; an element has what is above it for at most `turns`
// turns of its queue, each with at most `barge` acquires past it, while somebody waits around it.
// Network operations: none.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <vector>

#include "lockflight/lock/flight/node_lock.hpp"
#include "lockflight/rma/layout.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::lock {

/// The levels inside nodes that order something: whose elements are smaller than those of the level
/// above, and have more than one rank. From the largest elements to the smallest.
template <class Visit>
void for_each_level_inside(const rma::topology& machine, Visit visit) {
  // The words of as many levels fit into a line beside word and tail.
  for (int level = machine.node_level() + 1, above = machine.nodes(), left = 6;
       level <= machine.levels() && left > 0; ++level) {
    const int elements = machine.elements(level);
    if (elements == above || elements == machine.ranks()) continue;
    visit(level);
    above = elements;
    --left;
  }
}

template <rma::port Port>
class element_queues {
  using queue = node_lock<Port>;

 public:
  /// The lines of all levels inside, one on each rank, used on those that lead an element.
  static rma::plain_cell place(rma::layout& in, const rma::topology& machine) {
    std::uint32_t words = 0;
    for_each_level_inside(machine, [&](int) { words += rma::line_words; });
    return words == 0 ? rma::plain_cell{} : in.take<rma::plain_cell>(words);
  }

  struct bounds {
    std::int64_t barge;
    std::int64_t turns;      // of an element's queue
    std::int64_t handovers;  // of the smallest elements, or of the node
  };

  element_queues(rma::participant<Port>& me, const typename queue::cells& node,
                 rma::plain_cell lines, const bounds& set)
      : port_(me.port()),
        levels_(levels_inside(me.machine())),
        node_(me, node, {set.barge, levels_ == 0 ? set.handovers : 0}),
        turns_(static_cast<std::uint16_t>(set.turns)),
        elements_(me.memory()) {
    if (levels_ == 0) return;
    elements_.reserve(levels_);
    for_each_level_inside(me.machine(), [&](int level) {
      const rma::plain_cell line = lines.at(me.machine().leader_of(me.rank(), level)) +
                                   rma::line_words * static_cast<std::uint32_t>(elements_.size());
      // Who takes the word of a larger one need not be the one who puts it down.
      const bool is_smallest = elements_.size() + 1 == levels_;
      elements_.push_back(
          {queue(me, typename queue::cells(line), {set.barge, is_smallest ? set.handovers : 0}),
           line + 2});
    });
  }

  // What a node_lock offers, and what it costs, if there are no levels.

  template <class Until>
  [[nodiscard]] bool lock(Until until, node_word& kept) {
    return levels_ == 0 ? node_.lock(until, kept) : lock_inside(until, kept);
  }
  [[nodiscard]] bool try_lock(node_word& kept) {
    return levels_ == 0 ? node_.try_lock(kept) : try_lock_inside(kept);
  }

  [[nodiscard]] bool somebody_waits() {
    return node_.somebody_waits() || (in_elements_ && waits_inside());
  }
  void let_go(std::uint16_t note = 0) {
    node_.let_go(note);
    if (in_elements_) put_down_below(0);
  }
  void pass(node_word kept) {
    !in_elements_ || node_.somebody_waits() ? node_.pass(kept) : node_.let_go(kept.note);
    if (in_elements_) put_down_below(0);
  }
  [[nodiscard]] bool pass_to_somebody(node_word kept) {
    return in_elements_ ? pass_inside(kept) : node_.pass_to_somebody(kept);
  }

 private:
  struct element {
    queue word;
    rma::plain_cell above;    // [0] of the node, [i] of the element i levels below it
    std::uint16_t turns = 0;  // left when the word is ours
  };

  // Past all queues. Who had the words of its elements the last time looks there first; who did not
  // finds the node's word free, mostly, and touches no other line.
  [[nodiscard]] bool try_lock_inside(node_word& kept) {
    const bool as_last_time = in_elements_;
    if (as_last_time && take_from_element(kept)) return true;
    in_elements_ = false;
    return node_.try_lock(kept) || (!as_last_time && take_from_element(kept));
  }
  [[nodiscard]] bool take_from_element(node_word& kept) {
    node_word found;
    if (!elements_.back().word.take_with_top(found)) return false;
    go_on(levels_, found, kept);
    return true;
  }

  template <class Until>
  [[nodiscard, gnu::noinline]] bool lock_inside(Until until, node_word& kept) {
    if (try_lock_inside(kept)) return true;
    for (std::size_t i = levels_; i > 0; --i) {
      element& e = elements_[i - 1];
      node_word found;
      // Not past the queue for an element, which stays for many turns when it has the word.
      if (!(i == levels_ ? e.word.lock(until, found) : e.word.lock_in_turn(until, found))) {
        put_down_below(i);
        return false;
      }
      if (found.with_top) {
        go_on(i, found, kept);
        return true;
      }
      e.turns = static_cast<std::uint16_t>(turns_ - 1);  // the first is ours, however we came
    }
    in_elements_ = true;
    told_at_ = 0;
    if (node_.lock_in_turn(until, kept)) return true;
    put_down_below(0);
    return false;
  }

  // With the word of an element that has all above it.
  void go_on(std::size_t i, const node_word& found, node_word& kept) {
    in_elements_ = true;
    told_at_ = i;
    element& e = elements_[i - 1];
    e.turns = static_cast<std::uint16_t>(found.left - (found.left > 0 && !e.word.barged() ? 1 : 0));
    for (std::size_t j = 1; j < i; ++j) {
      const auto there = node_word::from(port_.load(above(e, j)));
      elements_[j - 1].word.stand_in(there.passed_by);
      elements_[j - 1].turns = there.left;
    }
    kept = node_word::from(port_.load(above(e, 0)));
    node_.stand_in(kept.passed_by);
    kept.with_top = true;
    kept.in_a_row = found.in_a_row;
    kept.note = found.note;
  }

  [[nodiscard, gnu::noinline]] bool pass_inside(const node_word& kept) {
    for (std::size_t i = levels_; i > 0; --i) {
      element& e = elements_[i - 1];
      if (!e.word.somebody_waits() || (e.turns == 0 && waits_above(i))) continue;
      if (i != told_at_) tell_what_is_above(i, kept);
      const node_word all{
          .with_top = true, .note = kept.note, .in_a_row = kept.in_a_row, .left = e.turns};
      if (!e.word.pass_to_somebody(all)) continue;
      put_down_below(i);
      return true;
    }
    if (!node_.somebody_waits() || !node_.pass_to_somebody(kept)) return false;
    put_down_below(0);
    return true;
  }

  // Before the word is put down, and visible before it (C11).
  void tell_what_is_above(std::size_t i, const node_word& kept) {
    element& e = elements_[i - 1];
    port_.store(above(e, 0), word_above(node_, kept.left));
    for (std::size_t j = 1; j < i; ++j)
      port_.store(above(e, j), word_above(elements_[j - 1].word, elements_[j - 1].turns));
  }
  [[nodiscard]] static rma::word word_above(const queue& word, std::uint16_t turns_left) {
    return node_word{.left = turns_left}.with_passed_by(word.passed_by()).bits();
  }

  // The words of the elements inside the i-th, without what is above them.
  void put_down_below(std::size_t i) {
    for (; i < levels_; ++i) {
      queue& word = elements_[i].word;
      word.somebody_waits() ? word.pass({}) : word.let_go();
    }
  }

  [[nodiscard]] bool waits_inside() {
    return std::any_of(elements_.begin(), elements_.end(),
                       [](element& e) { return e.word.somebody_waits(); });
  }
  [[nodiscard]] bool waits_above(std::size_t i) {
    while (--i > 0)
      if (elements_[i - 1].word.somebody_waits()) return true;
    return node_.somebody_waits();
  }

  [[nodiscard]] static rma::plain_cell above(const element& e, std::size_t j) {
    return e.above + static_cast<std::uint32_t>(j);
  }

  [[nodiscard]] static std::size_t levels_inside(const rma::topology& machine) {
    std::size_t levels = 0;
    for_each_level_inside(machine, [&](int) { ++levels; });
    return levels;
  }

  Port& port_;
  std::size_t levels_;
  queue node_;
  std::uint16_t turns_;
  bool in_elements_ = false;  // we hold the words of our elements, and not the node's alone
  std::size_t told_at_ = 0;   // the element whose cells say what is above it; 0: none
  std::pmr::vector<element> elements_;  // ours, from the largest to the smallest
};

}  // namespace lockflight::lock
