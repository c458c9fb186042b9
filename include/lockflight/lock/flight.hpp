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
// entered it, since the lock was passed on inside the node meanwhile. Where its successor waits is
// what the entry's cell holds, so that waiting is always local.
//
// Order: first come, first served among nodes and inside them, but for those who come past a
// node's queue, and for a node that keeps the lock for a while.
// Fairness bound: who stands in its node's queue is passed by at most `barge` others for each that
// stands before it and for itself; a node serves at most `local_budget` in a row while another one
// waits, if somebody of its own does; and the queue of nodes is passed on at most
// `remote_budget` times before the home's node has its turn. Network operations: on the home's node
// none. From elsewhere, with nobody on the node before us, 1 swap + 1 get to acquire, in one round
// trip where posts are ordered, and 1 compare-swap to release; behind another node 1 swap + 1 put,
// handoff 1 put. Inside a node none. Against the home's node 1 put and 2 gets for each look, with
// back-off.
#pragma once

#include <array>
#include <cstdint>

#include "lockflight/lock/about.hpp"
#include "lockflight/lock/node_queue.hpp"

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

template <rma::port Port>
class flight {
  using queue = node_queue<Port>;

 public:
  static constexpr facts about{
      .name = "flight",
      .what = kind::mutex,
      .source = "lockflight: a lock of each node, a queue of nodes, Peterson with the home's",
      .bytes_home = 32,
      .bytes_per_node = 24,
      .bytes_per_participant = 16,
      .node_at_home = true,
  };
  using parameters = flight_parameters;

  /// This lock's words: one line at a rank of each node, one more at the home.
  struct cells {
    rma::plain_cell lines;   // a node's word, tail and entry, at its leader; of the home's at home
    rma::nic_cell tail;      // the entry of the last node in the queue, or null_ref
    rma::plain_cell victim;  // the side that lets the other one go first

    static cells place(rma::layout& in, const rma::topology&, const parameters&, rma::rank_t home) {
      const auto lines = in.take<rma::plain_cell>(3).at(home);
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
        node_(me, typename queue::cells(where.line_of(me.machine(), me.rank())), set.barge),
        side_(me.machine().nodes() == 1                            ? side::only
              : me.machine().same_node(where.tail.home, me.rank()) ? side::home
                                                                   : side::remote),
        local_budget_(static_cast<int>(set.local_budget)),
        remote_budget_(static_cast<std::uint16_t>(set.remote_budget)) {}

  void lock() {
    has_ = node_.lock();
    if (side_ != side::only && !has_.with_top) climb();
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

  void unlock() { unlock(0); }

  // ---- for a lock that is made of this one, by its holder ----

  /// Whether unlock will pass the lock on: to somebody of our node, or to the node behind ours.
  [[nodiscard]] bool will_pass() {
    if (node_.somebody_waits() && stays_here()) return true;
    return side_ == side::remote && has_.left > 1 && port_.load(entry_) != rma::null_ref;
  }
  /// What the one who passed the lock to us has noted.
  [[nodiscard]] std::uint16_t note() const { return has_.note; }
  /// The note is for whoever the lock is passed to.
  void unlock(std::uint16_t note) {
    has_.note = note;
    const bool waited_for = node_.somebody_waits();
    const bool stays = waited_for && stays_here();
    if (side_ == side::remote && !stays) leave_queue();
    if (!waited_for) return node_.let_go();
    has_.with_top = stays && side_ != side::only;
    if (has_.with_top)
      ++has_.in_a_row;
    else
      has_ = {.note = note};
    node_.pass(has_);
  }

 private:
  enum class side : std::uint8_t { only, home, remote };

  // Values of `victim`. Zeroed memory names nobody.
  static constexpr rma::word local_side = 1;
  static constexpr rma::word remote_side = 2;

  // The word of a participant's line in which it waits for the node before its own. What it is
  // told: how many nodes the lock may still be passed to, + 1, and the note above; none left means
  // that it must agree with the home's node.
  static constexpr std::uint32_t told = 1;
  static constexpr int note_shift = 32;

  [[nodiscard]] bool stays_here() const {
    return side_ == side::only || has_.in_a_row + 1 < local_budget_;
  }

  // Fetches the lock above for our node.
  void climb() {
    has_ = {.left = remote_budget_};
    if (side_ == side::home) return agree_at_home();
    rma::word pred = 0;
    rma::word home = 0;
    port_.swap(tail_, rma::to_word(entry_), pred);
    const bool in_order = rma::orders_posts(port_);
    if (in_order) port_.get(home_word_, home);  // after the swap
    port_.flush(tail_.home);
    if (pred != rma::null_ref) {
      const rma::word what = wait_behind(pred);
      has_.left = static_cast<std::uint16_t>(what - 1);
      has_.note = static_cast<std::uint16_t>(what >> note_shift);
      if (has_.left > 0) return;
      has_ = {.left = remote_budget_};
      home = rma::get_now(port_, home_word_);
    } else if (!in_order) {
      home = rma::get_now(port_, home_word_);
    }
    if (node_word::interested(home)) agree_from_elsewhere();
  }

  [[nodiscard]] rma::word wait_behind(rma::word pred) {
    const rma::line line = me_.take_line();
    rma::put_now(port_, rma::from_word<rma::plain_cell>(pred), rma::to_word(line[told]));
    const rma::word what = port_.await(line[told], rma::differs_from(0));
    port_.store(line[told], 0);
    me_.give_back(line);
    return what;
  }

  [[nodiscard]] bool try_climb() {
    has_ = {.left = remote_budget_};
    if (side_ == side::home) return port_.load(tail_) == rma::null_ref;
    const rma::word entry = rma::to_word(entry_);
    if (rma::compare_swap_now(port_, tail_, rma::null_ref, entry) != rma::null_ref) return false;
    if (!node_word::interested(rma::get_now(port_, home_word_))) return true;
    rma::put_now(port_, victim_, remote_side);  // not a rival any more, whatever the tail says
    has_.left = 1;  // the lock is not ours: whoever came behind us must agree for itself
    leave_queue();
    return false;
  }

  // Peterson, Algorithm 4 of the ALock paper: our side is seen to be interested, by its word or by
  // the tail. Whoever finds the other side not interested has the lock; the other one looks later,
  // finds us, and becomes the victim.

  void agree_at_home() {
    if (port_.load(tail_) == rma::null_ref) return;  // after the compare-swap on the word (C14)
    port_.store(victim_, local_side);
    port_.fence();  // the looks come after it (C13)
    for (rma::backoff b = rma::backoff::none(); !home_may_enter();) port_.pause(b.next());
  }
  // Each alone is reason enough, so it does not matter in which order the two are read.
  [[nodiscard]] bool home_may_enter() {
    return port_.load(tail_) == rma::null_ref || port_.load(victim_) != local_side;
  }

  void agree_from_elsewhere() {
    rma::put_now(port_, victim_, remote_side);  // flushed: the looks come after it
    for (rma::backoff b(500, 8'000);; port_.pause(b.next())) {
      rma::word home = 0;
      rma::word victim = 0;
      port_.get(home_word_, home);
      port_.get(victim_, victim);
      port_.flush(tail_.home);
      if (!node_word::interested(home) || victim != remote_side) return;
    }
  }

  // Our node leaves the queue of nodes: to the next one, or, which is also the release to the
  // home's node, to nobody.
  void leave_queue() {
    rma::word succ = port_.load(entry_);
    if (succ == rma::null_ref) {
      const rma::word entry = rma::to_word(entry_);
      if (rma::compare_swap_now(port_, tail_, entry, rma::null_ref) == entry) return;
      // A node swapped itself in behind ours and is about to write its link.
      succ = port_.await(entry_, rma::differs_from(rma::null_ref));
    }
    port_.store(entry_, rma::null_ref);
    const rma::word left = has_.left - 1u;
    // Handoff: one put. Flushed, else the successor may wait for as long as we flush nothing else.
    rma::put_now(port_, rma::from_word<rma::plain_cell>(succ),
                 (left + 1) | rma::word{has_.note} << note_shift);
  }

  rma::participant<Port>& me_;
  Port& port_;
  rma::nic_cell tail_;
  rma::plain_cell victim_;
  rma::cpu_cell home_word_;  // the home's node's: its flag
  rma::plain_cell entry_;  // our node's entry in the queue: where its successor waits, or null_ref
  queue node_;
  side side_;
  int local_budget_;
  std::uint16_t remote_budget_;
  node_word has_;  // what we know while we hold the lock
};

}  // namespace lockflight::lock
