// flight: the library's own mutex. Those who share memory settle among themselves who of them is
// next (flight/node_lock.hpp), nodes queue for the lock at its home (flight/leader_queue.hpp), and
// the home's own node agrees with the head of that queue by Peterson's algorithm
// (flight/peterson.hpp), which needs reads and writes only. So nobody uses the network to reach its
// own node, and the two kinds of atomics never meet on a cell.
//
// Source: lockflight. The queue of nodes and what passes inside a node follow rma-mcs
// ("High-Performance Distributed RMA Locks", section 3), the agreement with the home's node follows
// alock ("ALock: Asymmetric Lock Primitive for RDMA Systems", section 5, Algorithm 4).
//
// An entry of the queue stands for a node (flight/leader_queue.hpp): who holds its lock may not be
// who entered it. Who gives up keeps the place in the queue for the next one of its node.
//
// Order: first come, first served among nodes and inside them, but for who comes past a node's
// queue, and for a node that keeps the lock for a while. Fairness bound: who stands in its node's
// queue is passed by at most `barge` others, and by one at least, for each that stands before it
// and for itself; a node serves at most `local_budget` in a row while another one waits, if
// somebody of its own does; and the queue of nodes is passed on at most `remote_budget` times
// before the home's node has its turn. Who gives up at the head of the queue of nodes, while the
// home's node has the lock, gives its node's place away. Where a node has levels inside, its
// elements have queues of their own (flight/element_queues.hpp), and all this is so of each; one
// that stands in the node's queue waits for at most `local_budget` turns of each before. Network
// operations: on the home's node none. From elsewhere, with nobody on the node before us, 1 swap +
// 1 get to acquire, in one round trip where posts are ordered, and 1 compare-swap to release;
// behind another node 1 swap + 1 put, handoff 1 put, or 1 get + 1 compare-swap to who may give up.
// Inside a node none. Against the home's node 1 put and 2 gets for each look, with back-off. Bytes:
// as below, and of the i-th level inside nodes 16 + 8 i for each element.
#pragma once

#include <cstdint>

#include "lockflight/lock/about.hpp"
#include "lockflight/lock/flight/element_queues.hpp"
#include "lockflight/lock/flight/leader_queue.hpp"
#include "lockflight/lock/flight/node_lock.hpp"
#include "lockflight/lock/flight/parameters.hpp"
#include "lockflight/lock/flight/peterson.hpp"

namespace lockflight::lock {

template <rma::port Port>
class flight {
  using queues = element_queues<Port>;
  using node_cells = typename node_lock<Port>::cells;
  using nodes = leader_queue<Port>;
  using ours = typename nodes::ours;
  using outcome = typename peterson<Port>::outcome;

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
    rma::nic_cell tail;      // the entry of the last node in the queue, or a free_tail
    rma::plain_cell victim;  // the side that lets the other one go first
    rma::plain_cell inside;  // the lines of the elements inside nodes, at their leaders

    static cells place(rma::layout& in, const rma::topology& machine, const parameters& set,
                       rma::rank_t home) {
      const bool one_line = set.one_line == 1;
      const auto lines = in.take<rma::plain_cell>(one_line ? rma::line_words : 4).at(home);
      // The home's node does not enter the queue of nodes, so it has no use for entry and turn.
      const auto top = one_line ? rma::nic_cell{lines.home, lines.index + 2}
                                : in.take<rma::nic_cell>(2).at(home);
      return {.lines = lines,
              .tail = top,
              .victim = {top.home, top.index + 1},
              .inside = queues::place(in, machine)};
    }

    /// With `one_line`: four words more on the line of a node's, for a lock that is made of this
    /// one. Without it the line ends before them.
    [[nodiscard]] rma::plain_cell beside() const { return lines + 4; }
    /// The line of rank's node.
    [[nodiscard]] rma::plain_cell line_of(const rma::topology& machine, rma::rank_t rank) const {
      return lines.at(node_host(machine, rank, tail.home));
    }
  };

  /// `zero_note` is what the home's word notes in zeroed memory.
  flight(rma::participant<Port>& me, const cells& where, const parameters& set = {},
         std::uint16_t zero_note = 0)
      : port_(me.port()),
        home_word_(node_cells(where.lines).word),
        sides_(me.port(), where.victim, home_word_),
        nodes_(me.port(), where.tail, where.line_of(me.machine(), me.rank()) + 2),
        node_(me, node_cells(where.line_of(me.machine(), me.rank())), where.inside,
              {set.barge, set.local_budget, set.handovers_on(me.port())}),
        side_(me.machine().nodes() == 1                            ? side::only
              : me.machine().same_node(where.tail.home, me.rank()) ? side::home
                                                                   : side::remote),
        in_order_(rma::orders_posts(port_)),
        zero_note_(zero_note),
        local_budget_(static_cast<int>(set.local_budget)),
        remote_budget_(static_cast<std::uint16_t>(set.remote_budget)) {}

  void lock() { static_cast<void>(lock_until(rma::forever{}, nothing)); }

  /// Takes the lock, unless that takes longer than so many nanoseconds. What lock costs.
  [[nodiscard]] bool try_lock_within(std::uint64_t nanoseconds) {
    if (nanoseconds == 0) return try_lock();
    return lock_until(port_.deadline_in(nanoseconds), nothing);
  }

  /// Takes the lock if nobody of our node has it and no other node has it or waits. On the home's
  /// node 1 CPU compare-swap and 2 loads; from elsewhere 1 compare-swap and 1 get, to withdraw
  /// 1 put and what unlock costs. 1 compare-swap more if the word, or the tail, has another note
  /// than it had for us the last time.
  [[nodiscard]] bool try_lock() {
    // Who keeps trying must not look, each time that the other side looks, like one that is in.
    if (std::uint16_t said = 0; side_ == side::home && !nodes_.is_empty(said)) return false;
    if (!node_.try_lock(has_)) return false;
    if (side_ == side::only || has_.with_top || try_climb()) return true;
    put_word_back();  // and tell the queue's head that it was passed by
    return false;
  }

  void unlock() { unlock_with(0); }

  // ---- for a lock that is made of this one ----
  /// unlock, with a note for whoever is told that the lock is its own, and one that it keeps while
  /// it is free. Of the home's node that is in its word, of the others in the tail. Who finds the
  /// lock free reads both, and one of them is of the last holder: what both say that has noted. On
  /// a single node there is the word alone.
  void unlock_with(std::uint16_t note, std::uint16_t when_free = 0) {
    const bool waited_for = node_.somebody_waits();
    if (waited_for && pass_inside(note)) return;
    if (side_ == side::remote) leave_queue(note, {when_free});
    give_word_away(waited_for, when_free);
  }

  /// `look` posts gets at the home with ours; has_looked: they came when the lock was ours.
  template <class Until, class Look>
  [[nodiscard]] bool lock_until(Until until, Look look) {
    has_looked_ = false;
    if (!node_.lock(until, has_)) return false;
    if (side_ == side::only || has_.with_top || climb(until, look)) return true;
    put_word_back();
    return false;
  }

  [[nodiscard]] bool has_looked() const { return has_looked_; }
  /// What the one who had the lock before us has noted, or 0 if we were not told; for its holder.
  [[nodiscard]] std::uint16_t note() const { return note_in(has_); }

  /// Passes the lock on with a note, to somebody of our node, or to the node behind ours. False,
  /// and the lock is still ours, if nobody waits whom it would go to.
  [[nodiscard]] bool pass(std::uint16_t note) {
    const bool waited_for = node_.somebody_waits();
    if (waited_for && pass_inside(note)) return true;
    if (side_ != side::remote || has_.left <= 1 || !nodes_.leave(ours::keep, nodes_left(), note))
      return false;
    give_word_away(waited_for);
    return true;
  }

 private:
  enum class side : std::uint8_t { only, home, remote };

  static constexpr auto nothing = [] {};

  [[nodiscard]] bool stays_here() const {
    return side_ == side::only || has_.in_a_row + 1 < local_budget_;
  }

  // To somebody of our node that waits, while our node may keep the lock.
  [[nodiscard, gnu::noinline]] bool pass_inside(std::uint16_t note) {
    if (!stays_here()) return false;
    if (side_ == side::only) return node_.pass_to_somebody(node_word{}.with_note(in_memory(note)));
    node_word kept = has_.with_note(in_memory(note));
    kept.with_top = true;
    ++kept.in_a_row;
    return node_.pass_to_somebody(kept);
  }

  // The word of our node, without the lock above; that of the home's node keeps a note.
  void give_word_away(bool waited_for, std::uint16_t note = 0) {
    const std::uint16_t kept = side_ == side::remote ? std::uint16_t{0} : in_memory(note);
    waited_for ? node_.pass(node_word{}.with_note(kept)) : node_.let_go(kept);
  }
  // The same for who has not got that, and knows of nothing to note.
  void put_word_back() { give_word_away(node_.somebody_waits()); }
  // The note of a node's word, and back.
  [[nodiscard]] std::uint16_t in_memory(std::uint16_t note) const {
    return static_cast<std::uint16_t>(note ^ zero_note_);
  }
  [[nodiscard]] std::uint16_t note_in(node_word w) const { return in_memory(w.note); }

  // What the next node is told: how many it may still be passed to.
  [[nodiscard]] std::uint16_t nodes_left() const {
    return static_cast<std::uint16_t>(has_.left - 1u);
  }
  // Out of the queue of nodes, which is also the release to the home's node.
  void leave_queue(std::uint16_t note, free_tail when_free) {
    static_cast<void>(nodes_.leave(ours::let_go, nodes_left(), note, when_free));
  }

  // Whether the lock above is ours, with what both sides have noted. They tell nothing if the other
  // one waits, since that may have had the lock after we read them, and its word is a held one's.
  [[nodiscard]] bool got_top(outcome how, std::uint16_t of_home, std::uint16_t of_others) {
    if (how == outcome::gave_up) return false;
    const bool is_told = how == outcome::other_is_away && of_home == of_others;
    has_ = node_word{.left = remote_budget_}.with_note(in_memory(is_told ? of_home : 0));
    return true;
  }

  // Fetches the lock above for our node.
  template <class Until, class Look>
  [[nodiscard, gnu::noinline]] bool climb(Until until, Look look) {
    if (side_ == side::home) {
      std::uint16_t said = 0;
      const outcome how = sides_.agree_at_home(until, [&] { return nodes_.is_empty(said); });
      return got_top(how, note(), said);
    }
    rma::word home = 0;
    const auto look_in_order = [&] {  // after the swap
      if (in_order_) port_.get(home_word_, home), look();
    };
    turn_word turn;
    switch (nodes_.enter(until, look_in_order, turn)) {
      case nodes::arrival::gave_up:
        return false;
      case nodes::arrival::told:
        if (turn.nodes > 0) {
          has_ = node_word{.left = turn.nodes}.with_note(in_memory(turn.note));
          return true;
        }
        home = rma::get_now(port_, home_word_);
        turn.note = 0;  // the home's node may have had it since
        break;
      case nodes::arrival::first:
        has_looked_ = in_order_;
        if (!in_order_) home = rma::get_now(port_, home_word_);
        break;
    }
    const outcome how = sides_.agree_from_elsewhere(until, home, [&] {
      if (in_order_) look();
      has_looked_ = in_order_;
    });
    if (got_top(how, note_in(node_word::from(home)), turn.note)) return true;
    leave_without_the_lock();
    return false;
  }

  [[nodiscard]] bool try_climb() {
    std::uint16_t said = 0;
    if (side_ == side::home)
      return nodes_.is_empty(said) && got_top(outcome::other_is_away, note(), said);
    if (!nodes_.try_enter(said)) return false;
    const rma::word home = rma::get_now(port_, home_word_);
    if (!node_word::interested(home))
      return got_top(outcome::other_is_away, note_in(node_word::from(home)), said);
    sides_.give_way();
    leave_without_the_lock();
    return false;
  }

  // At the head of the queue, but the home's node has it: who is behind us agrees for itself.
  void leave_without_the_lock() {
    has_ = {.left = 1};
    leave_queue(0, {});
  }

  Port& port_;
  rma::cpu_cell home_word_;
  peterson<Port> sides_;
  nodes nodes_;
  queues node_;
  side side_;
  bool in_order_;            // what we post
  bool has_looked_ = false;  // when the lock became ours
  std::uint16_t zero_note_;
  int local_budget_;
  std::uint16_t remote_budget_;
  node_word has_;  // what we found when it became ours, the note as in memory
};

}  // namespace lockflight::lock
