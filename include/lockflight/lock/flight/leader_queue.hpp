// The queue of nodes at the top of flight: one entry for each node, and its tail at the lock's
// home. It follows the queue of an element in rma-mcs ("High-Performance Distributed RMA Locks",
// section 3); an entry stands for a node, and not for a participant of it.
//
// Where a node waits for its turn is a cell beside its entry (turn_word), so that waiting is always
// local. Who gives up there leaves the node's entry in the queue, marked in that cell. The next one
// of the node takes the place up again; if the turn comes before, whoever has it takes the entry
// out. That needs a compare-swap where a put does for those who stay, so the link to an entry says
// whether somebody may give up there.
//
// The tail of a queue that nobody is in says what the last one that left it has noted; who enters
// it has that by the same swap.
//
// Order: first come, first served.
// Network operations: to enter 1 swap, behind another node 1 put more; to leave 1 put to the node
// behind, 1 get + 1 compare-swap if that may give up, 1 compare-swap if there is none. To give up
// or to take the place up again 1 compare-swap; to take an entry out 2 gets, 1 compare-swap, 2
// puts.
#pragma once

#include <concepts>
#include <cstdint>

#include "lockflight/rma/port.hpp"

namespace lockflight::lock {

/// Where a node waits for its turn in the queue of nodes: what its predecessor tells it. Zeroed
/// memory is of a node that stands in no queue.
struct turn_word {
  bool wait = false;        ///< the parity of the last wait that has ended, or was given up
  bool left = false;        ///< given up: the node's entry is still in the queue
  bool out = false;         ///< and somebody is taking it out
  std::uint16_t nodes = 0;  ///< that the lock may still be passed to; 0: agree with the home's node
  std::uint16_t note = 0;   ///< the user's

  [[nodiscard]] static constexpr turn_word from(rma::word w) {
    return {(w & 1) != 0, (w & 2) != 0, (w & 4) != 0, static_cast<std::uint16_t>(w >> 16),
            static_cast<std::uint16_t>(w >> 32)};
  }
  [[nodiscard]] constexpr rma::word bits() const {
    return rma::word{wait} | rma::word{left} << 1 | rma::word{out} << 2 | rma::word{nodes} << 16 |
           rma::word{note} << 32;
  }
};

/// What an entry of the queue of nodes holds: the one behind it, and how that one waits.
struct entry_link {
  rma::plain_cell entry;
  bool wait = false;  ///< the parity of its wait
  bool may_give_up = false;

  static constexpr rma::word wait_bit = rma::word{1} << 62;  // ranks leave these two free
  static constexpr rma::word may_give_up_bit = rma::word{1} << 63;

  [[nodiscard]] static constexpr entry_link from(rma::word w) {
    return {rma::from_word<rma::plain_cell>(w & ~(wait_bit | may_give_up_bit)), (w & wait_bit) != 0,
            (w & may_give_up_bit) != 0};
  }
  [[nodiscard]] constexpr rma::word bits() const {
    return rma::to_word(entry) | (wait ? wait_bit : 0) | (may_give_up ? may_give_up_bit : 0);
  }
};

/// What the tail says while no node is in the queue: no entry, but a note.
struct free_tail {
  std::uint16_t note = 0;

  [[nodiscard]] static constexpr bool is(rma::word tail) {
    return rma::from_word<rma::plain_cell>(tail).index == 0;  // which no entry has (C21)
  }
  /// Of a tail that is one.
  [[nodiscard]] static constexpr free_tail from(rma::word tail) {
    return {static_cast<std::uint16_t>(rma::from_word<rma::plain_cell>(tail).home)};
  }
  [[nodiscard]] constexpr rma::word bits() const { return rma::to_word(rma::plain_cell{note, 0}); }
};
static_assert(free_tail{}.bits() == rma::null_ref);

template <rma::port Port>
class leader_queue {
 public:
  enum class arrival : std::uint8_t { first, told, gave_up };
  /// What becomes of the lock if no node is behind ours.
  enum class ours : std::uint8_t { keep, let_go };

  /// `entry` is our node's, with its turn in the cell behind it.
  leader_queue(Port& p, rma::nic_cell tail, rma::plain_cell entry)
      : port_(p), tail_(tail), entry_(entry), turn_(turn_of(entry)) {}

  /// On the home's node only; `note` is then what the tail says.
  [[nodiscard]] bool is_empty(std::uint16_t& note) {
    const rma::word tail = port_.load(tail_);
    if (!free_tail::is(tail)) return false;
    note = free_tail::from(tail).note;
    return true;
  }

  /// Our node enters the queue, or takes up the place that one of us has left there. `post` is
  /// called when it has posted its swap, and what it posts to the home is complete if that made our
  /// node the first. First: the tail has said the note in `turn`. Told: the node before ours has
  /// said what is there.
  template <class Until, class Post>
  [[nodiscard]] arrival enter(Until until, Post post, turn_word& turn) {
    rma::word before = port_.load(turn_);
    if (!has_a_place(before)) {
      rma::word pred = 0;
      port_.swap(tail_, rma::to_word(entry_), pred);
      post();
      port_.flush(tail_.home);
      if (free_tail::is(pred)) {
        turn.note = free_tail::from(pred).note;
        return arrival::first;
      }
      const entry_link link{.entry = entry_,
                            .wait = !turn_word::from(before).wait,
                            .may_give_up = !std::same_as<Until, rma::forever>};
      rma::put_now(port_, rma::from_word<rma::plain_cell>(pred), link.bits());
    }
    return wait_for_turn(before, until, turn) ? arrival::told : arrival::gave_up;
  }

  /// Enters the queue if no node is in it; `note` is then what the tail has said. 1 compare-swap, 2
  /// if that is not what it said to us the last time.
  [[nodiscard]] bool try_enter(std::uint16_t& note) {
    if (turn_word::from(port_.load(turn_)).left) return false;  // behind a node that has the lock
    const rma::word entry = rma::to_word(entry_);
    rma::word found = rma::compare_swap_now(port_, tail_, free_.bits(), entry);
    if (found != free_.bits()) {
      if (!free_tail::is(found)) return false;
      free_ = free_tail::from(found);
      found = rma::compare_swap_now(port_, tail_, free_.bits(), entry);
      if (found != free_.bits()) return false;  // by then somebody else has been here
    }
    note = free_.note;
    return true;
  }

  /// Our node leaves the head of the queue: to the next one that has not given up, which is told
  /// `nodes` and `note`, or to nobody, and then the tail says `when_free`. False if there is no
  /// next one; to keep the lock then means to stay in the queue.
  [[nodiscard]] bool leave(ours then, std::uint16_t nodes, std::uint16_t note,
                           free_tail when_free = {}) {
    const rma::word entry = rma::to_word(entry_);
    while (true) {
      rma::word succ = port_.load(entry_);
      if (succ == rma::null_ref) {
        if (then == ours::keep) return false;
        if (rma::compare_swap_now(port_, tail_, entry, when_free.bits()) == entry) return false;
        // A node swapped itself in behind ours and is about to write its link.
        succ = port_.await(entry_, rma::differs_from(rma::null_ref));
      }
      port_.store(entry_, rma::null_ref);
      const entry_link next = entry_link::from(succ);
      const turn_word turn{.wait = next.wait, .nodes = nodes, .note = note};
      if (!next.may_give_up) {
        // Handoff: one put. Flushed, else the successor may wait for as long as we flush nothing.
        rma::put_now(port_, turn_of(next.entry), turn.bits());
        return true;
      }
      if (tell(next, turn)) return true;
      take_out(next);
    }
  }

 private:
  [[nodiscard]] static rma::nic_cell turn_of(rma::plain_cell entry) {
    return {entry.home, entry.index + 1};
  }

  // Whether our node's entry is in the queue, left there by one of us who gave up: then its place
  // is ours. `now` is what the cell of our turn holds.
  [[nodiscard]] bool has_a_place(rma::word& now) {
    turn_word turn = turn_word::from(now);
    if (!turn.left) return false;
    if (!turn.out) {
      turn.left = false;
      turn.wait = !turn.wait;  // that wait goes on
      const rma::word found = rma::compare_swap_now(port_, turn_, now, turn.bits());
      if (found == now) {
        now = turn.bits();
        return true;
      }
    }
    now = port_.await(turn_, [](rma::word there) { return !turn_word::from(there).left; });
    return false;
  }

  // `before` is what the cell held before anybody could tell us: the turn may have come already.
  template <class Until>
  [[nodiscard]] bool wait_for_turn(rma::word before, Until until, turn_word& turn) {
    const bool wait = !turn_word::from(before).wait;
    const auto ended = [=](rma::word now) { return turn_word::from(now).wait == wait; };
    rma::word now = 0;
    if (!rma::await(port_, turn_, ended, until, now)) {
      const rma::word given_up = turn_word{.wait = wait, .left = true}.bits();
      now = rma::compare_swap_now(port_, turn_, before, given_up);
      if (now == before) return false;
    }
    turn = turn_word::from(now);
    return true;
  }

  // False if the node has given up; then its entry is ours to take out.
  [[nodiscard]] bool tell(const entry_link& next, const turn_word& turn) {
    const rma::nic_cell at = turn_of(next.entry);
    rma::word found = rma::get_now(port_, at);
    while (true) {
      turn_word there = turn_word::from(found);
      const bool given_up = there.left;
      there.out = true;
      const rma::word wanted = given_up ? there.bits() : turn.bits();
      const rma::word before = rma::compare_swap_now(port_, at, found, wanted);
      if (before == found) return !given_up;
      found = before;  // it gave up, or came back
      port_.pause(0);
    }
  }

  // An entry behind ours that its node has left. What is behind that comes behind ours.
  void take_out(const entry_link& gone) {
    rma::word behind = rma::get_now(port_, gone.entry);
    if (behind == rma::null_ref) {
      const rma::word last = rma::to_word(gone.entry);
      // We are the last again; our own link is null, and was before anybody can write it (C12).
      if (rma::compare_swap_now(port_, tail_, last, rma::to_word(entry_)) != last)
        behind = port_.poll(gone.entry, rma::differs_from(rma::null_ref), rma::backoff(500, 8'000));
    }
    if (behind != rma::null_ref) {
      rma::put_now(port_, gone.entry, rma::null_ref);
      port_.store(entry_, behind);
    }
    // The node's own again, once its entry is.
    rma::put_now(port_, turn_of(gone.entry), turn_word{.wait = gone.wait}.bits());
  }

  Port& port_;
  rma::nic_cell tail_;     // the entry of the last node, or a free_tail
  rma::plain_cell entry_;  // our node's: an entry_link, or null_ref
  rma::nic_cell turn_;     // our node's: a turn_word
  free_tail free_;         // the tail, as far as we know, while no node is in the queue
};

}  // namespace lockflight::lock
