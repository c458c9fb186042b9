// The queue of nodes at the top of flight: one entry for each node, and its tail at the lock's
// home. An entry stands for a node, and not for a participant: the holder need not be the
// participant that entered it.
//
// Source: the queue of an element in rma-mcs ("High-Performance Distributed RMA Locks", section 3);
// giving up as in the abortable queue locks that part/abortable_queue.hpp cites.
//
// A node waits for its turn at a cell beside its entry (turn_word), so waiting is local. A waiter
// that gives up leaves its node's entry in the queue and marks that cell. The next participant of
// the node continues to wait in the same place. If the entry's turn comes before that, the
// predecessor removes the entry (I6). If a participant comes back while the predecessor removes the
// entry, it does not wait for that: the predecessor finds it at the end, and puts the entry back
// behind its own. A waiter does not touch its node's entry, so only the predecessor writes it then.
// The predecessor passes a turn by compare-swap if the waiter may give up, and by a put if it may
// not; the link to the entry says which.
//
// Order: first come, first served. Network operations:
//   enter               1 swap; 1 put more behind another node
//   leave               1 put to the successor; 1 get + 1 compare-swap if that may give up; 1
//                       compare-swap if there is none
//   give up, come back  1 compare-swap
//   take an entry out   2 gets, 1 compare-swap, and 1 put or 1 compare-swap; if its node came back,
//                       at most 1 compare-swap and 1 put more
#pragma once

#include <concepts>
#include <cstdint>

#include "lockflight/rma/packed.hpp"
#include "lockflight/rma/port.hpp"

namespace lockflight::lock {

/// The word at which a node waits for its turn, with the value that its predecessor passes to it.
/// Zeroes: in no queue.
struct turn_word : rma::packed<turn_word> {
  static constexpr rma::field wait{0, 1};  ///< parity of the last wait that ended or was given up
  static constexpr rma::field left{1, 1};  ///< the waiter gave up; its entry is still in the queue
  static constexpr rma::field nodes{16,
                                    16};  ///< nodes that may follow; 0: agree with the home's node
  static constexpr rma::field value{32, 16};  ///< the handoff value, the user's
  static_assert(rma::are_disjoint({wait, left, nodes, value}));
};

/// The content of an entry: its successor's entry, and how the successor waits. null_ref if there
/// is no successor.
struct entry_link {
  rma::plain_cell entry;
  bool wait = false;  ///< the parity of its wait
  bool may_give_up = false;

  // Ranks leave the two topmost bits of a reference free.
  static constexpr rma::word wait_bit = rma::word{1} << 62;
  static constexpr rma::word may_give_up_bit = rma::word{1} << 63;

  [[nodiscard]] static constexpr entry_link from(rma::word w) {
    return {rma::from_word<rma::plain_cell>(w & ~(wait_bit | may_give_up_bit)), (w & wait_bit) != 0,
            (w & may_give_up_bit) != 0};
  }
  [[nodiscard]] constexpr rma::word bits() const {
    return rma::to_word(entry) | (wait ? wait_bit : 0) | (may_give_up ? may_give_up_bit : 0);
  }
};

template <rma::port Port>
class leader_queue {
 public:
  enum class arrival : std::uint8_t { first, passed, gave_up };
  /// The choice if no node is behind ours: whether we keep or release the lock.
  enum class if_alone : std::uint8_t { keep, release };

  /// `entry` is our node's entry; the cell after it holds our node's turn.
  leader_queue(Port& p, rma::nic_cell tail, rma::plain_cell entry)
      : port_(p), tail_(tail), entry_(entry), turn_(turn_of(entry)) {}

  /// On the home's node only.
  [[nodiscard]] bool is_empty() { return port_.load(tail_) == rma::null_ref; }

  /// Our node enters the queue, or continues in the place that one of its participants has left
  /// there. `post` is called after the swap is posted; what it posts to the home is complete if the
  /// result is `first`. If the result is `passed`, `turn` is the value from the predecessor.
  template <class Until, class Post>
  [[nodiscard]] arrival enter(Until until, Post post, turn_word& turn) {
    rma::word before = port_.load(turn_);
    if (!has_a_place(before)) {
      rma::word pred = 0;
      port_.swap(tail_, rma::to_word(entry_), pred);
      post();
      port_.flush(tail_.home);
      if (pred == rma::null_ref) return arrival::first;
      const entry_link link{.entry = entry_,
                            .wait = !turn_word::from(before).has(turn_word::wait),
                            .may_give_up = !std::same_as<Until, rma::forever>};
      rma::put_now(port_, rma::from_word<rma::plain_cell>(pred), link.bits());
    }
    return wait_for_turn(before, until, turn) ? arrival::passed : arrival::gave_up;
  }

  /// Enters the queue if no node is in it. 1 compare-swap.
  [[nodiscard]] bool try_enter() {
    // Our node's entry is already in the queue, behind a node that has the lock.
    if (turn_word::from(port_.load(turn_)).has(turn_word::left)) return false;
    return rma::compare_swap_now(port_, tail_, rma::null_ref, rma::to_word(entry_)) ==
           rma::null_ref;
  }

  /// Our node leaves the head of the queue and passes `turn` to the next node that has not given
  /// up. Returns false if there is none; with `if_alone::keep` our node then stays in the queue.
  [[nodiscard]] bool leave(if_alone then, turn_word turn) {
    const rma::word entry = rma::to_word(entry_);
    while (true) {
      rma::word succ = port_.load(entry_);
      if (succ == rma::null_ref) {
        if (then == if_alone::keep) return false;
        if (rma::compare_swap_now(port_, tail_, entry, rma::null_ref) == entry) return false;
        // A node swapped itself in behind ours and is about to write its link.
        succ = port_.await(entry_, rma::differs_from(rma::null_ref));
      }
      port_.store(entry_, rma::null_ref);
      const entry_link next = entry_link::from(succ);
      turn = turn.with(turn_word::wait, next.wait ? 1 : 0);
      if (!next.may_give_up) {
        // Handoff: one put. Flushed, else the successor would wait until we flush something else.
        rma::put_now(port_, turn_of(next.entry), turn.bits());
        return true;
      }
      if (pass(next, turn)) return true;
      take_out(next);
    }
  }

 private:
  [[nodiscard]] static rma::nic_cell turn_of(rma::plain_cell entry) {
    return {entry.home, entry.index + 1};
  }

  // True if a waiter that gave up has left our node's entry in the queue; its place is ours then
  // (I6). `now` is the value of our turn's cell.
  [[nodiscard]] bool has_a_place(rma::word& now) {
    const auto turn = turn_word::from(now);
    if (!turn.has(turn_word::left)) return false;
    // This leader continues that wait, unless the predecessor has removed the entry meanwhile.
    const auto waits =
        turn.without(turn_word::left).with(turn_word::wait, turn.has(turn_word::wait) ? 0 : 1);
    const rma::word found = rma::compare_swap_now(port_, turn_, now, waits.bits());
    const bool is_in = found == now;
    now = is_in ? waits.bits() : found;
    return is_in;
  }

  // `before` is what the cell held before the predecessor knew of us: our turn may have come since.
  template <class Until>
  [[nodiscard]] bool wait_for_turn(rma::word before, Until until, turn_word& turn) {
    const bool wait = !turn_word::from(before).has(turn_word::wait);
    const auto ended = [=](rma::word now) {
      return turn_word::from(now).has(turn_word::wait) == wait;
    };
    rma::word now = 0;
    if (!rma::await(port_, turn_, ended, until, now)) {
      const auto given_up = turn_word{}.with(turn_word::wait, wait ? 1 : 0).with(turn_word::left);
      now = rma::compare_swap_now(port_, turn_, before, given_up.bits());
      if (now == before) return false;
    }
    turn = turn_word::from(now);
    return true;
  }

  // Returns false if the node has given up; we must remove its entry then.
  [[nodiscard]] bool pass(const entry_link& next, const turn_word& turn) {
    const rma::nic_cell at = turn_of(next.entry);
    const rma::word found = rma::get_now(port_, at);
    return !turn_word::from(found).has(turn_word::left) &&
           rma::compare_swap_now(port_, at, found, turn.bits()) == found;
  }

  // Removes the entry behind ours, which its node has left. The entry after it becomes our
  // successor. If the node has come back meanwhile, its entry stays our successor.
  void take_out(const entry_link& gone) {
    rma::word behind = rma::get_now(port_, gone.entry);
    if (behind == rma::null_ref) {
      const rma::word last = rma::to_word(gone.entry);
      // This leader is the last again; our own link is null, and was before anybody can write it
      // (C12).
      if (rma::compare_swap_now(port_, tail_, last, rma::to_word(entry_)) != last)
        behind = port_.poll(gone.entry, rma::differs_from(rma::null_ref), rma::backoff(500, 8'000));
    }
    if (behind != rma::null_ref) {
      rma::put_now(port_, gone.entry, rma::null_ref);
      port_.store(entry_, behind);
    }
    // The entry is its node's again, if the node still does not wait.
    const auto ended = turn_word{}.with(turn_word::wait, gone.wait ? 1 : 0);
    const rma::word left = ended.with(turn_word::left).bits();
    if (rma::compare_swap_now(port_, turn_of(gone.entry), left, ended.bits()) != left)
      put_back(gone);
  }

  // Enters an entry behind ours, ahead of our successor. Its node waits.
  void put_back(const entry_link& back) {
    rma::word behind = port_.load(entry_);
    const rma::word own = rma::to_word(entry_);
    if (behind == rma::null_ref &&
        rma::compare_swap_now(port_, tail_, own, rma::to_word(back.entry)) != own)
      behind = port_.await(entry_, rma::differs_from(rma::null_ref));
    if (behind != rma::null_ref) rma::put_now(port_, back.entry, behind);
    port_.store(entry_, back.bits());
  }

  Port& port_;
  rma::nic_cell tail_;     // the entry of the last node
  rma::plain_cell entry_;  // our node's: an entry_link, or null_ref
  rma::nic_cell turn_;     // our node's: a turn_word
};

}  // namespace lockflight::lock
