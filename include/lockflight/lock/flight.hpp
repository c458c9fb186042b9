// flight: the library's own mutex. Participants that share memory agree by a lock of their node;
// nodes queue at the lock's home; and the home's own node agrees with the head of that queue by
// Peterson's algorithm, which needs reads and writes only. So no participant uses the network to
// reach its own node, and the two kinds of atomics never meet on a cell.
//
// Source: lockflight. The queue of nodes and the budgets follow rma-mcs ("High-Performance
// Distributed RMA Locks", section 3), the agreement with the home's node follows alock ("ALock:
// Asymmetric Lock Primitive for RDMA Systems", section 5, Algorithm 4).
//
// "The top" is the right to the lock among nodes. docs/flight.md has the invariants I1 to I6.
//
// Order: first come, first served among nodes and inside a node, except that arrivals may barge and
// that budgets limit how often a node, or the other nodes, are served in a row.
// Fairness: no waiter starves. most_overtaken bounds how often a waiter is overtaken, on a single
// node and where each node has one participant. On other machines no number does: a releaser gives
// the top away before it leaves its node's word to the next waiter, and until that waiter asks for
// the top, other nodes may have it any number of times. If a waiter gives up at the head of the
// leaders' queue while the home's node has the lock, its node loses its place in that queue.
// Network operations:
//   on the home's node, and inside any node   none
//   from elsewhere, free                      1 swap + 1 get, in one round trip where posts are
//                                             ordered; release 1 compare-swap
//   behind another node                       1 swap + 1 put; handoff 1 put, or 1 get + 1
//                                             compare-swap if the successor may give up
//   against the home's node                   1 put, and 2 gets a poll, with back-off
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "lockflight/lock/about.hpp"
#include "lockflight/lock/flight/leader_queue.hpp"
#include "lockflight/lock/flight/node_lock.hpp"
#include "lockflight/lock/flight/parameters.hpp"
#include "lockflight/lock/flight/peterson.hpp"
#include "lockflight/rma/layout.hpp"

namespace lockflight::lock {

template <rma::port Port>
class flight {
  using node_cells = typename node_lock<Port>::cells;
  using leaders = leader_queue<Port>;
  using if_alone = typename leaders::if_alone;
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
    rma::nic_cell tail;      // the entry of the last node in the queue
    rma::plain_cell victim;  // the side that lets the other one go first

    static cells place(rma::layout& in, const rma::topology&, const parameters& set,
                       rma::rank_t home) {
      const bool one_line = set.one_line == 1;
      const std::uint32_t words = one_line || set.patience != 0 ? rma::line_words : 4;
      const auto lines = in.take<rma::plain_cell>(words).at(home);
      // The home's node does not enter the leaders' queue, so it has no use for entry and turn.
      const auto top = one_line ? rma::nic_cell{lines.home, lines.index + 2}
                                : in.take<rma::nic_cell>(2).at(home);
      return {.lines = lines, .tail = top, .victim = {top.home, top.index + 1}};
    }

    /// Three more words on a node's line, for a lock that is built on this one. Only with
    /// `one_line`: without it the line may end before them.
    [[nodiscard]] rma::plain_cell beside() const { return lines + 4; }
    /// The line of rank's node.
    [[nodiscard]] rma::plain_cell line_of(const rma::topology& machine, rma::rank_t rank) const {
      return lines.at(node_host(machine, rank, tail.home));
    }
  };

  /// The most times that a waiter is overtaken by later participants; std::nullopt where no number
  /// bounds that.
  [[nodiscard]] static std::optional<std::int64_t> most_overtaken(const rma::topology& machine,
                                                                  const parameters& set) {
    if (machine.nodes() == 1) return most_overtaken_inside(machine.ranks(), set);
    if (machine.largest_node() > 1) return std::nullopt;
    return most_overtaken_among(machine.nodes(), set);
  }

  flight(rma::participant<Port>& me, const cells& where, const parameters& set = {})
      : port_(me.port()),
        home_word_(node_cells(where.lines).word),
        sides_(me.port(), where.victim, home_word_),
        leaders_(me.port(), where.tail, where.line_of(me.machine(), me.rank()) + 2),
        node_(me, node_cells(where.line_of(me.machine(), me.rank())),
              {set.barge_on(me.port()), set.handovers_on(me.port()), set.patience_on(me.port())}),
        side_(me.machine().nodes() == 1                            ? side::only
              : me.machine().same_node(where.tail.home, me.rank()) ? side::home
                                                                   : side::remote),
        local_budget_(static_cast<rma::word>(set.local_budget)),
        remote_budget_(static_cast<rma::word>(set.remote_budget)) {}

  void lock() { static_cast<void>(lock_until(rma::forever{})); }

  /// Takes the lock unless that takes longer than `nanoseconds`. Costs what lock costs.
  [[nodiscard]] bool try_lock_within(std::uint64_t nanoseconds) {
    if (nanoseconds == 0) return try_lock();
    return lock_until(port_.deadline_in(nanoseconds));
  }

  /// Takes the lock if no participant of our node has it and no other node has it or waits for it.
  /// On the home's node 1 CPU compare-swap and 2 loads; from elsewhere 1 compare-swap and 1 get,
  /// and to withdraw 1 put and what unlock costs.
  [[nodiscard]] bool try_lock() {
    // A caller that retries in a loop must not look like a holder at every read of the other side.
    if (side_ == side::home && !leaders_.is_empty()) return false;
    if (!node_.try_lock(has_)) return false;
    if (has_top() || try_climb()) return true;
    release_word(node_.has_waiters());  // the head learns that it was overtaken
    return false;
  }

  void unlock() { unlock_with(0); }

  // ---- for a lock that is built on this one ----

  /// unlock, with a handoff value for the next holder, if one waits.
  void unlock_with(rma::word value) {
    const bool waited_for = node_.has_waiters();
    if (waited_for && pass_inside(value)) return;
    // Out of the leaders' queue first, which is the release to the other nodes (I1).
    if (side_ == side::remote) static_cast<void>(leaders_.leave(if_alone::release, turn(value)));
    release_word(waited_for);
  }
  template <class Until>
  [[nodiscard]] bool lock_until(Until until) {
    if (!node_.lock(until, has_)) return false;
    if (has_top() || climb(until)) return true;
    release_word(node_.has_waiters());
    return false;
  }

  /// The handoff value, or 0 if the lock was free.
  [[nodiscard]] rma::word value() const { return has_.get(node_word::value); }

  /// Passes the lock on with a value, to a waiter of our node, or to the node behind ours. Returns
  /// false and keeps the lock if neither waits.
  [[nodiscard]] bool pass(rma::word value) {
    const bool waited_for = node_.has_waiters();
    if (waited_for && pass_inside(value)) return true;
    if (side_ != side::remote || has_.get(node_word::left) <= 1 ||
        !leaders_.leave(if_alone::keep, turn(value)))
      return false;
    release_word(waited_for);
    return true;
  }

 private:
  enum class side : std::uint8_t { only, home, remote };

  // Every participant ahead of a waiter in the queue, and the waiter itself, becomes the head once.
  // Later participants overtake a head `barge` times at the most. Each of these participants may
  // also have given up and come back to its old place, and is then one more that overtakes.
  [[nodiscard]] static std::int64_t most_overtaken_inside(std::int64_t ranks,
                                                          const parameters& set) {
    const std::int64_t heads = ranks - 1;  // all but the holder of the word
    return heads * (std::max<std::int64_t>(set.most_barges(), 1) + 1);
  }
  // Of nodes with one participant each. The home's overtakes a waiter in the leaders' queue once
  // for each head that the queue has up to the waiter, which is one too. The nodes between the
  // first head and the waiter may have given up and come back to their old places. A waiter on the
  // home's node waits for `remote_budget` nodes in a row, the first of which came before it.
  [[nodiscard]] static std::int64_t most_overtaken_among(std::int64_t nodes,
                                                         const parameters& set) {
    const std::int64_t come_back = std::max<std::int64_t>(nodes - 3, 0);
    return std::max(nodes - 1 + come_back, set.remote_budget - 1);
  }

  // True if this rank got the top together with its node's word (I1, I2). If not, climb() fetches
  // it.
  [[nodiscard]] bool has_top() const {
    return has_.has(node_word::with_top) || side_ == side::only;
  }

  // Passes our node's word with the top to a waiter of our node, while the budget lasts (I2, I4).
  [[nodiscard, gnu::noinline]] bool pass_inside(rma::word value) {
    const auto to = node_word{}.with(node_word::value, value);
    if (side_ == side::only) return node_.pass_to_waiter(to);
    const rma::word in_a_row = has_.get(node_word::in_a_row) + 1;
    return in_a_row < local_budget_ &&
           node_.pass_to_waiter(to.with(node_word::with_top)
                                    .with(node_word::in_a_row, in_a_row)
                                    .with(node_word::left, has_.get(node_word::left)));
  }

  // Releases our node's word without the top.
  void release_word(bool waited_for) { waited_for ? node_.pass({}) : node_.release(); }

  // The value to pass to the next node.
  [[nodiscard]] turn_word turn(rma::word value) const {
    return turn_word{}
        .with(turn_word::nodes, has_.get(node_word::left) - 1)
        .with(turn_word::value, value);
  }

  // Notes that we have the top, and what was passed with it.
  void got_top(rma::word left, rma::word value) {
    has_ = node_word{}.with(node_word::left, left).with(node_word::value, value);
  }
  // Notes the result of the agreement with the other side (I5).
  [[nodiscard]] bool got_top(outcome how) {
    if (how == outcome::gave_up) return false;
    got_top(remote_budget_, 0);
    return true;
  }

  // Fetches the top for our node.
  template <class Until>
  [[nodiscard, gnu::noinline]] bool climb(Until until) {
    if (side_ == side::home)
      return got_top(sides_.agree_at_home(until, [&] { return leaders_.is_empty(); }));
    const bool in_order = rma::orders_posts(port_);
    rma::word home = 0;
    turn_word turn;
    const auto read_home_in_order = [&] {  // after the swap, in the same round trip
      if (in_order) port_.get(home_word_, home);
    };
    switch (leaders_.enter(until, read_home_in_order, turn)) {
      case leaders::arrival::gave_up:
        return false;
      case leaders::arrival::passed:
        if (turn.has(turn_word::nodes)) {
          got_top(turn.get(turn_word::nodes), turn.get(turn_word::value));
          return true;
        }
        home = rma::get_now(port_, home_word_);
        break;
      case leaders::arrival::first:
        if (!in_order) home = rma::get_now(port_, home_word_);
        break;
    }
    if (got_top(sides_.agree_from_elsewhere(until, home))) return true;
    leave_without_top();
    return false;
  }

  [[nodiscard]] bool try_climb() {
    if (side_ == side::home) return leaders_.is_empty() && got_top(outcome::other_is_away);
    if (!leaders_.try_enter()) return false;
    if (!node_word::from(rma::get_now(port_, home_word_)).is_interested())
      return got_top(outcome::other_is_away);
    sides_.give_way();
    leave_without_top();
    return false;
  }

  // This rank gave up at the head of the queue while the home's node had the top: passes the head's
  // place to the next node, which agrees with the home's node itself.
  void leave_without_top() {
    has_ = node_word{}.with(node_word::left, 1);
    static_cast<void>(leaders_.leave(if_alone::release, turn(0)));
  }

  Port& port_;
  rma::cpu_cell home_word_;
  peterson<Port> sides_;
  leaders leaders_;
  node_lock<Port> node_;
  side side_;
  rma::word local_budget_;
  rma::word remote_budget_;
  node_word has_;  // the word that we found, or were passed, when the lock became ours
};

}  // namespace lockflight::lock
