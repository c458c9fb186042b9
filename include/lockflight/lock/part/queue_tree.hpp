// The distributed tree of queues (DT): rma-mcs consists of it, and the writers of rma-rw climb it.
// Every element of the machine has a queue (DQ), whose TAIL lies at the element's leader.
//
// Source: "High-Performance Distributed RMA Locks", sections 3.2.2 to 3.3.2, Listings 4 and 5. A
// participant enters the queue of its smallest element, at level N, and climbs: the head of the
// queue of an element at level i enters the queue of the parent element, at level i - 1, on behalf
// of its element.
//
// Differences from the listings:
// - Above level N an entry of a queue stands for an *element*. The holder may not be the
//   participant that entered it, since the lock was passed on inside the element meanwhile. The
//   listings write p for both, and a releaser p that reads its own NEXT waits for ever. Here an
//   entry is identified by its NEXT cell: a participant's own at level N, the child element's
//   above. NEXT holds the cell in which the successor waits, so waiting is always local.
// - STATUS carries the counts of *all* levels in one word. So a participant that receives the lock
//   inside an element knows how often it was passed at each level above, without another operation.
//
// Invariant: a queue node or entry that is in no queue is all zero, as the fabric gives it out.
//
// Cost in network operations at each level; waiting is local:
// | enter | 1 swap, with a predecessor 1 put |
// | leave | 1 compare-swap                   |
// | pass  | 1 put                            |
#pragma once

#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "lockflight/rma/assert.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::lock {

/// The most levels that a tree can have.
constexpr int most_levels = 4;

/// T_L,i for i = 1 … most_levels (index i - 1).
using locality_thresholds = std::array<std::int64_t, most_levels>;

/// STATUS: the handoff value that a predecessor passes to its successor, in one word. 0 is WAIT.
/// The low two bits are the order; above them are the counts, for each level how often in a row the
/// lock was passed there.
class tree_status {
 public:
  enum class order : std::uint8_t {
    wait = 0,            // WAIT: nothing was passed yet
    enter = 1,           // the receiver has the lock; the counts follow
    acquire_parent = 2,  // ACQUIRE_PARENT: the receiver climbs to the level above
    mode_change = 3,     // MODE_CHANGE: rma-rw, level 1 only: the readers have the lock
  };

  static constexpr int order_bits = 2;
  static constexpr int count_bits = (64 - order_bits) / most_levels;
  static constexpr std::int64_t most_count = (std::int64_t{1} << count_bits) - 1;

  constexpr tree_status() = default;
  constexpr explicit tree_status(order o) : bits_(static_cast<rma::word>(o)) {}
  [[nodiscard]] static constexpr tree_status from(rma::word bits) {
    tree_status s;
    s.bits_ = bits;
    return s;
  }

  [[nodiscard]] constexpr rma::word bits() const { return bits_; }
  [[nodiscard]] constexpr order what() const {
    return static_cast<order>(bits_ & ((rma::word{1} << order_bits) - 1));
  }
  [[nodiscard]] constexpr std::int64_t count(int level) const {
    return static_cast<std::int64_t>(bits_ >> shift(level)) & most_count;
  }

  /// The value for the next holder at `level`: passed there once more, and not yet below.
  [[nodiscard]] constexpr tree_status passed_at(int level) const {
    rma::ensure(count(level) < most_count, "a count of passings has room");
    const rma::word above = bits_ & ((rma::word{1} << shift(level + 1)) - 1);
    tree_status s;
    s.bits_ = ((above + (rma::word{1} << shift(level))) & ~((rma::word{1} << order_bits) - 1)) |
              static_cast<rma::word>(order::enter);
    return s;
  }

 private:
  [[nodiscard]] static constexpr int shift(int level) {
    return order_bits + (level - 1) * count_bits;
  }

  rma::word bits_ = 0;
};

static_assert(tree_status().what() == tree_status::order::wait, "zeroed memory says WAIT");
static_assert(tree_status::order_bits + most_levels * tree_status::count_bits <= 64);
static_assert(tree_status(tree_status::order::enter).passed_at(2).passed_at(2).count(2) == 2);
static_assert(tree_status(tree_status::order::enter).passed_at(2).passed_at(1).count(2) == 0);

template <rma::port Port>
class queue_tree {
 public:
  using order = tree_status::order;

  /// The words of a lock in the tree. A block of this shape lies at the same index on every rank;
  /// only the leaders' blocks are used.
  struct cells {
    rma::nic_cell tails;    // [level - 1] at the leader of an element of that level
    rma::plain_cell nexts;  // [level - 1] at the leader of an element of that level, for level > 1:
                            // NEXT of its entry in the queue one level up
    rma::rank_t home = 0;   // hosts the root's tail

    static cells place(rma::layout& in, const rma::topology& machine, rma::rank_t home) {
      const int levels = machine.levels();
      if (levels > most_levels)
        throw std::length_error("a tree of queues has at most " + std::to_string(most_levels) +
                                " levels, the machine has " + std::to_string(levels));
      const auto words = static_cast<std::uint32_t>(levels);
      return {in.take<rma::nic_cell>(words), in.take<rma::plain_cell>(words), home};
    }

    [[nodiscard]] rma::nic_cell tail(const rma::topology& machine, rma::rank_t rank,
                                     int level) const {
      const rma::rank_t host = level == 1 ? home : machine.leader_of(rank, level);
      return tails.at(host) + static_cast<std::uint32_t>(level - 1);
    }
    [[nodiscard]] rma::plain_cell next(const rma::topology& machine, rma::rank_t rank,
                                       int level) const {
      return nexts.at(machine.leader_of(rank, level)) + static_cast<std::uint32_t>(level - 1);
    }
  };

  queue_tree(rma::participant<Port>& me, const cells& where)
      : me_(me), port_(me.port()), levels_(me.machine().levels()) {
    for (int level = 1; level <= levels_; ++level) {
      at(tail_, level) = where.tail(me.machine(), me.rank(), level);
      // The entry at `level` belongs to the child element; at level N it is our own.
      if (level < levels_) at(entry_, level) = where.next(me.machine(), me.rank(), level + 1);
      at(here_, level) =
          level == levels_ || me.machine().same_node(at(entry_, level).home, me.rank());
    }
  }

  [[nodiscard]] int levels() const { return levels_; }

  /// While we hold the lock: how often it was passed at each level.
  tree_status status;

  /// A participant takes a queue node before it enters, and gives it back when it has left level N.
  void take_queue_node() {
    node_ = me_.take_queue_node();
    at(entry_, levels_) = node_[next];
    status = tree_status(order::enter);
  }
  void give_back_queue_node() { me_.give_back(node_); }

  /// Listing 4, lines 2 to 20: enters the queue at `level` and waits. Returns the order that the
  /// predecessor passed, or acquire_parent if there was none.
  order enter(int level) {
    const rma::word pred = rma::swap_now(port_, at(tail_, level), rma::to_word(at(entry_, level)));
    if (pred == rma::null_ref) return order::acquire_parent;
    // The predecessor learns where we wait; flushed, since it may be waiting for it.
    rma::put_now(port_, rma::from_word<rma::plain_cell>(pred), rma::to_word(node_[wait]));
    const auto told = tree_status::from(port_.await(node_[wait], rma::differs_from(0)));
    // A participant has one STATUS for all levels: while we wait at a level we head the queues
    // below it, and only the predecessor at this level writes to us, once. The store is visible
    // before our later posts take effect (C12), so the next writer of STATUS finds it reset.
    port_.store(node_[wait], tree_status().bits());
    rma::ensure(told.what() != order::wait, "a predecessor says what to do");
    if (told.what() == order::enter) status = told;
    return told.what();
  }

  /// Enters the queue at `level` only if it is empty. 1 compare-swap.
  [[nodiscard]] bool try_enter(int level) {
    return rma::compare_swap_now(port_, at(tail_, level), rma::null_ref,
                                 rma::to_word(at(entry_, level))) == rma::null_ref;
  }

  /// The cell in which our successor waits, if it has written its link; else null_ref.
  [[nodiscard]] rma::word successor(int level) {
    const rma::plain_cell entry = at(entry_, level);
    return at(here_, level) ? port_.load(entry) : rma::get_now(port_, entry);
  }

  /// Passes `what` to our successor at `level`; our entry is out of the queue then. 1 put, flushed,
  /// else the successor would wait until we flush something else. The entry is left as it was
  /// found, without a link: 1 more put where it lies on another node.
  void pass(int level, rma::word succ, tree_status what) {
    const rma::plain_cell entry = at(entry_, level);
    const auto waits = rma::from_word<rma::plain_cell>(succ);
    if (at(here_, level))
      port_.store(entry, rma::null_ref);
    else
      port_.put(entry, rma::null_ref);
    port_.put(waits, what.bits());
    port_.flush(waits.home);
    // Before we leave our element's queue, since the next participant of the element uses the
    // entry.
    if (!at(here_, level)) port_.flush(entry.home);
  }

  /// Listing 5, lines 13 to 23: takes our entry out of the queue at `level`, or, if it has a
  /// successor, passes `what` to that one. `succ` is the successor if the caller knows it.
  void leave(int level, rma::word succ, tree_status what) {
    if (succ == rma::null_ref) {
      const rma::word entry = rma::to_word(at(entry_, level));
      if (rma::compare_swap_now(port_, at(tail_, level), entry, rma::null_ref) == entry) return;
      succ = await_successor(level);
    }
    pass(level, succ, what);
  }

  /// True if the queue at `level` is not empty. 1 get.
  [[nodiscard]] bool occupied(int level) {
    return rma::get_now(port_, at(tail_, level)) != rma::null_ref;
  }

 private:
  // The words of our queue node (section 3.2.2). All are zero while it is in no queue, so a
  // participant that finds a queue empty prepares nothing.
  static constexpr std::uint32_t next = 0;  // NEXT of our entry at level N
  static constexpr std::uint32_t wait = 1;  // STATUS: a tree_status, 0 while we must wait

  template <class T>
  [[nodiscard]] static T& at(std::array<T, most_levels>& of, int level) {
    return of[static_cast<std::size_t>(level - 1)];
  }

  // A successor has swapped the tail and is about to write its link.
  rma::word await_successor(int level) {
    rma::ensure(me_.has_taken(node_), "only the holder releases");
    const rma::plain_cell entry = at(entry_, level);
    const auto linked = rma::differs_from(rma::null_ref);
    if (at(here_, level)) return port_.await(entry, linked);
    // Only where an element spans several nodes and its leader is on another node.
    return port_.poll(entry, linked, rma::backoff(200, 10'000));
  }

  rma::participant<Port>& me_;
  Port& port_;
  int levels_;
  rma::queue_node node_;
  std::array<rma::nic_cell, most_levels> tail_{};
  std::array<rma::plain_cell, most_levels> entry_{};
  std::array<bool, most_levels> here_{};  // the entry is on our node
};

}  // namespace lockflight::lock
