// flight: the library's own mutex. Those who share memory settle among themselves who of them is
// next (node_queue.hpp), nodes queue for the lock at its home, and the home's own node agrees with
// the head of that queue by Peterson's algorithm, which needs reads and writes only. So nobody uses
// the network to reach its own node, and the two kinds of atomics never meet on a cell.
//
// Source: lockflight. The queue of nodes and what passes inside a node follow rma-mcs
// ("High-Performance Distributed RMA Locks", section 3), the agreement with the home's node follows
// alock ("ALock: Asymmetric Lock Primitive for RDMA Systems", section 5, Algorithm 4).
//
// An entry of the queue stands for a node: whoever holds its lock there may not be the one who
// entered it, since the lock was passed on inside the node meanwhile. Where the node waits for its
// turn is a cell of its own line (turn_cell), so that waiting is always local.
//
// Who gives up while it waits for its node's turn leaves the node's entry in the queue, marked in
// that cell. The next one of the node takes the place up again; if the turn comes before, whoever
// has it takes the entry out. That needs a compare-swap where a put does for those who stay, so the
// link to an entry says whether somebody may give up there. The places inside a node are the node
// queue's affair.
//
// Order: first come, first served among nodes and inside them, but for those who come past a
// node's queue, and for a node that keeps the lock for a while.
// Fairness bound: who stands in its node's queue is passed by at most `barge` others for each that
// stands before it and for itself; a node serves at most `local_budget` in a row while another one
// waits, if somebody of its own does; and the queue of nodes is passed on at most
// `remote_budget` times before the home's node has its turn. Who gives up at the head of the queue
// of nodes, while the home's node has the lock, gives its node's place away.
// Network operations: on the home's node none. From elsewhere, with nobody on the node before us,
// 1 swap + 1 get to acquire, in one round trip where posts are ordered, and 1 compare-swap to
// release; behind another node 1 swap + 1 put, handoff 1 put, or 1 get + 1 compare-swap to who may
// give up. Inside a node none. Against the home's node 1 put and 2 gets for each look, with
// back-off. To give up or to take a node's place up again 1 compare-swap; to take an entry out
// 2 gets, 1 compare-swap, 2 puts.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>

#include "lockflight/lock/about.hpp"
#include "lockflight/lock/node_queue.hpp"
#include "lockflight/lock/timed.hpp"

namespace lockflight::lock {

struct flight_parameters {
  std::int64_t barge = 64;
  std::int64_t local_budget = 64;
  std::int64_t remote_budget = 64;

  [[nodiscard]] static constexpr auto all() {
    return std::array{
        parameter<flight_parameters>{"barge", [](auto& p) -> std::int64_t& { return p.barge; }, 0,
                                     60'000, "acquires that come past the head of a node's queue"},
        parameter<flight_parameters>{"local_budget",
                                     [](auto& p) -> std::int64_t& { return p.local_budget; }, 1,
                                     60'000, "acquires in a row on a node while another one waits"},
        parameter<flight_parameters>{"remote_budget",
                                     [](auto& p) -> std::int64_t& { return p.remote_budget; }, 1,
                                     60'000, "nodes in a row before the home's node is let in"},
    };
  }
};

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

template <rma::port Port>
class flight : public timed_names<flight<Port>> {
  using queue = node_queue<Port>;

 public:
  static constexpr facts about{
      .name = "flight",
      .what = kind::mutex,
      .source = "lockflight: a lock of each node, a queue of nodes, Peterson with the home's",
      .bytes_home = 32,
      .bytes_per_node = 32,
      .bytes_per_participant = 24,
      .node_at_home = true,
  };
  using parameters = flight_parameters;

  /// This lock's words: one line at a rank of each node, one more at the home.
  struct cells {
    rma::plain_cell lines;   // a node's word, tail, entry and turn, at its leader; or at home
    rma::nic_cell tail;      // the entry of the last node in the queue, or null_ref
    rma::plain_cell victim;  // the side that lets the other one go first

    static cells place(rma::layout& in, const rma::topology&, const parameters&, rma::rank_t home) {
      const auto lines = in.take<rma::plain_cell>(4).at(home);
      const auto top = in.take<rma::nic_cell>(2).at(home);
      return {.lines = lines, .tail = top, .victim = {top.home, top.index + 1}};
    }

    /// The line of rank's node.
    [[nodiscard]] rma::plain_cell line_of(const rma::topology& machine, rma::rank_t rank) const {
      return lines.at(node_host(machine, rank, tail.home));
    }
  };

  flight(rma::participant<Port>& me, const cells& where, const parameters& set = {})
      : me_(me),
        port_(me.port()),
        tail_(where.tail),
        victim_(where.victim),
        home_word_(typename queue::cells(where.lines).word),
        entry_(where.line_of(me.machine(), me.rank()) + 2),
        turn_(turn_of(entry_)),
        node_(me, typename queue::cells(where.line_of(me.machine(), me.rank())), set.barge),
        side_(me.machine().nodes() == 1                            ? side::only
              : me.machine().same_node(where.tail.home, me.rank()) ? side::home
                                                                   : side::remote),
        local_budget_(static_cast<int>(set.local_budget)),
        remote_budget_(static_cast<std::uint16_t>(set.remote_budget)) {}

  void lock() { static_cast<void>(lock_until(rma::forever{})); }

  /// Takes the lock, unless that takes longer than so many nanoseconds. What lock costs.
  [[nodiscard]] bool try_lock_within(std::uint64_t nanoseconds) {
    if (nanoseconds == 0) return try_lock();
    return lock_until(port_.deadline_in(nanoseconds));
  }

  /// Takes the lock if nobody of our node has it and no other node has it or waits. On the home's
  /// node 1 CPU compare-swap and 2 loads; from elsewhere 1 compare-swap and 1 get, to withdraw
  /// 1 put and what unlock costs.
  [[nodiscard]] bool try_lock() {
    // Who keeps trying must not look, each time that the other side looks, like one that is in.
    if (side_ == side::home && port_.load(tail_) != rma::null_ref) return false;
    if (!node_.try_lock(has_)) return false;
    if (side_ == side::only || has_.with_top || try_climb()) return true;
    node_.let_go();
    return false;
  }

  void unlock() {
    has_.note = 0;
    const bool waited_for = node_.somebody_waits();
    if (waited_for && pass_inside()) return;
    if (side_ == side::remote) static_cast<void>(leave_queue(ours::let_go));
    give_word_away(waited_for);
  }

  // ---- for a lock that is made of this one ----

  template <class Until>
  [[nodiscard]] bool lock_until(Until until) {
    if (!node_.lock(until, has_)) return false;
    if (side_ == side::only || has_.with_top || climb(until)) return true;
    give_word_away(node_.somebody_waits());
    return false;
  }

  /// What the one who passed the lock to us has noted; for its holder.
  [[nodiscard]] std::uint16_t note() const { return has_.note; }

  /// Passes the lock on with a note, to somebody of our node, or to the node behind ours. False,
  /// and the lock is still ours, if nobody waits whom it would go to.
  [[nodiscard]] bool pass(std::uint16_t note) {
    has_.note = note;
    const bool waited_for = node_.somebody_waits();
    if (waited_for && pass_inside()) return true;
    if (side_ != side::remote || has_.left <= 1 || !leave_queue(ours::keep)) return false;
    give_word_away(waited_for);
    return true;
  }

 private:
  enum class side : std::uint8_t { only, home, remote };

  // Values of `victim`. Zeroed memory names nobody.
  static constexpr rma::word local_side = 1;
  static constexpr rma::word remote_side = 2;

  // What becomes of the lock if no node is behind ours.
  enum class ours : std::uint8_t { keep, let_go };

  [[nodiscard]] static rma::nic_cell turn_of(rma::plain_cell entry) {
    return {entry.home, entry.index + 1};
  }

  [[nodiscard]] bool stays_here() const {
    return side_ == side::only || has_.in_a_row + 1 < local_budget_;
  }

  // To somebody of our node that waits, while our node may keep the lock.
  [[nodiscard]] bool pass_inside() {
    if (!stays_here()) return false;
    if (side_ == side::only) return node_.pass_to_somebody({.note = has_.note});
    node_word kept = has_;
    kept.with_top = true;
    ++kept.in_a_row;
    return node_.pass_to_somebody(kept);
  }

  // The word of our node, without the lock above.
  void give_word_away(bool waited_for) { waited_for ? node_.pass({}) : node_.let_go(); }

  // Fetches the lock above for our node.
  template <class Until>
  [[nodiscard]] bool climb(Until until) {
    has_ = {.left = remote_budget_};
    if (side_ == side::home) return agree_at_home(until);
    rma::word before = port_.load(turn_);
    if (stands_in_queue(before)) return wait_for_turn(before, until) && agree_if_told(until);
    rma::word pred = 0;
    rma::word home = 0;
    port_.swap(tail_, rma::to_word(entry_), pred);
    const bool in_order = rma::orders_posts(port_);
    if (in_order) port_.get(home_word_, home);  // after the swap
    port_.flush(tail_.home);
    if (pred != rma::null_ref) {
      const entry_link link{.entry = entry_,
                            .wait = !turn_word::from(before).wait,
                            .may_give_up = !std::same_as<Until, rma::forever>};
      rma::put_now(port_, rma::from_word<rma::plain_cell>(pred), link.bits());
      return wait_for_turn(before, until) && agree_if_told(until);
    }
    if (!in_order) home = rma::get_now(port_, home_word_);
    return !node_word::interested(home) || agree_from_elsewhere(until);
  }

  // ---- our node's turn ----

  // Whether our node's entry is in the queue, left there by one of us who gave up: then its place
  // is ours. `now` is what the cell of our turn holds.
  [[nodiscard]] bool stands_in_queue(rma::word& now) {
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
  [[nodiscard]] bool wait_for_turn(rma::word before, Until until) {
    const bool wait = !turn_word::from(before).wait;
    const auto ended = [=](rma::word now) { return turn_word::from(now).wait == wait; };
    rma::word now = 0;
    if (!rma::await(port_, turn_, ended, until, now)) {
      const rma::word given_up = turn_word{.wait = wait, .left = true}.bits();
      now = rma::compare_swap_now(port_, turn_, before, given_up);
      if (now == before) return false;
    }
    const turn_word turn = turn_word::from(now);
    has_.left = turn.nodes;
    has_.note = turn.note;
    return true;
  }

  // After our turn has come: whether it is ours at once, or from the home's node.
  template <class Until>
  [[nodiscard]] bool agree_if_told(Until until) {
    if (has_.left > 0) return true;
    has_ = {.left = remote_budget_};
    return !node_word::interested(rma::get_now(port_, home_word_)) || agree_from_elsewhere(until);
  }

  [[nodiscard]] bool try_climb() {
    has_ = {.left = remote_budget_};
    if (side_ == side::home) return port_.load(tail_) == rma::null_ref;
    if (turn_word::from(port_.load(turn_)).left) return false;  // behind a node that has the lock
    const rma::word entry = rma::to_word(entry_);
    if (rma::compare_swap_now(port_, tail_, rma::null_ref, entry) != rma::null_ref) return false;
    if (!node_word::interested(rma::get_now(port_, home_word_))) return true;
    rma::put_now(port_, victim_, remote_side);  // not a rival any more, whatever the tail says
    leave_without_the_lock();
    return false;
  }

  // Peterson, Algorithm 4 of the ALock paper: our side is seen to be interested, by its word or by
  // the tail. Whoever finds the other side not interested has the lock; the other one looks later,
  // finds us, and becomes the victim.

  template <class Until>
  [[nodiscard]] bool agree_at_home(Until until) {
    if (port_.load(tail_) == rma::null_ref) return true;  // after the RMW on the word (C14)
    port_.store(victim_, local_side);
    port_.fence();  // the looks come after it (C13)
    for (rma::backoff b = rma::backoff::none(); !home_may_enter(); port_.pause(b.next()))
      if (rma::is_over(port_, until)) return false;
    return true;
  }
  // Each alone is reason enough, so it does not matter in which order the two are read.
  [[nodiscard]] bool home_may_enter() {
    return port_.load(tail_) == rma::null_ref || port_.load(victim_) != local_side;
  }

  template <class Until>
  [[nodiscard]] bool agree_from_elsewhere(Until until) {
    rma::put_now(port_, victim_, remote_side);  // flushed: the looks come after it
    for (rma::backoff b(500, 8'000);; port_.pause(b.next())) {
      rma::word home = 0;
      rma::word victim = 0;
      port_.get(home_word_, home);
      port_.get(victim_, victim);
      port_.flush(tail_.home);
      if (!node_word::interested(home) || victim != remote_side) return true;
      if (rma::is_over(port_, until)) break;
    }
    leave_without_the_lock();
    return false;
  }

  // ---- out of the queue of nodes ----

  // At its head, but the home's node has the lock: whoever is behind us must agree for itself.
  void leave_without_the_lock() {
    has_ = {.left = 1};
    static_cast<void>(leave_queue(ours::let_go));
  }

  // Our node leaves the queue of nodes: to the next one that has not given up, or, which is also
  // the release to the home's node, to nobody. False if there is no next one; to keep the lock then
  // means to stay in the queue.
  [[nodiscard]] bool leave_queue(ours then) {
    const rma::word entry = rma::to_word(entry_);
    while (true) {
      rma::word succ = port_.load(entry_);
      if (succ == rma::null_ref) {
        if (then == ours::keep) return false;
        if (rma::compare_swap_now(port_, tail_, entry, rma::null_ref) == entry) return false;
        // A node swapped itself in behind ours and is about to write its link.
        succ = port_.await(entry_, rma::differs_from(rma::null_ref));
      }
      port_.store(entry_, rma::null_ref);
      const entry_link next = entry_link::from(succ);
      const turn_word turn{.wait = next.wait,
                           .nodes = static_cast<std::uint16_t>(has_.left - 1u),
                           .note = has_.note};
      if (!next.may_give_up) {
        // Handoff: one put. Flushed, else the successor may wait for as long as we flush nothing.
        rma::put_now(port_, turn_of(next.entry), turn.bits());
        return true;
      }
      if (tell(next, turn)) return true;
      take_out(next);
    }
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

  rma::participant<Port>& me_;
  Port& port_;
  rma::nic_cell tail_;
  rma::plain_cell victim_;
  rma::cpu_cell home_word_;  // the home's node's: its flag
  rma::plain_cell entry_;    // our node's in the queue: an entry_link, or null_ref
  rma::nic_cell turn_;       // our node's: a turn_word
  queue node_;
  side side_;
  int local_budget_;
  std::uint16_t remote_budget_;
  node_word has_;  // what we know while we hold the lock
};

}  // namespace lockflight::lock
