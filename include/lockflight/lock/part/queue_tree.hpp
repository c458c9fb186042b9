// The distributed tree of queues (DT): what rma-mcs is, and what the writers of rma-rw climb.
//
// Source: "High-Performance Distributed RMA Locks", sections 3.2.2 to 3.3.2, Listings 4 and 5.
//
// Every element of the machine has a queue (DQ): its TAIL lies at the element's leader. A
// participant enters the queue of its smallest element, at level N, and climbs: whoever heads the
// queue of an element at level i enters the queue of the element around it, at level i - 1, for its
// element.
//
// Two things differ from the listings.
// - Above level N an entry of a queue stands for an *element*, and whoever holds the lock there may
//   not be the one who entered it: the lock was passed on inside the element meanwhile. The
//   listings write p for both, and a releaser p that looks at its own NEXT waits for ever. Here an
//   entry is known by its NEXT cell: a participant's own at level N, the child element's above.
//   Where the one waits who stands behind it is what NEXT holds, so that waiting is always local.
// - STATUS carries the counts of *all* levels in its one word, so that whoever receives the lock
//   inside an element knows how often it was passed at each level above, at no extra operation.
//
// Network operations at each level: enter 1 swap (+ 1 put with a predecessor), leave 1
// compare-swap, pass 1 put.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "lockflight/rma/assert.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::lock {

/// The most levels that a tree can have.
constexpr int most_levels = 4;

/// T_L,i for i = 1 … most_levels (index i - 1).
using locality_thresholds = std::array<std::int64_t, most_levels>;

/// STATUS: what a predecessor tells its successor, in one word. 0 is WAIT. The low two bits say
/// what to do; above them, for each level, how often in a row the lock was passed there.
class tree_status {
 public:
  enum class order : std::uint8_t {
    wait = 0,            // WAIT: nothing was said yet
    enter = 1,           // the lock is yours; the counts follow
    acquire_parent = 2,  // ACQUIRE_PARENT: go on to the level above
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

  /// The lock as its next holder at `level` gets it: passed there once more, and never yet below.
  [[nodiscard]] constexpr tree_status passed_at(int level) const {
    rma::ensure(count(level) < most_count, "a count of passings has room");
    const rma::word kept = bits_ & ((rma::word{1} << shift(level + 1)) - 1);
    tree_status s;
    s.bits_ = ((kept + (rma::word{1} << shift(level))) & ~((rma::word{1} << order_bits) - 1)) |
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

/// How often somebody who waits in a tree of queues can be overtaken by later comers; an upper
/// bound.
///
/// An element of level i has the lock for at most W(i) = (T_L,i + 1) × W(i + 1) acquires in a row.
/// The element of a waiter has it at most X(i) times before the waiter is served, as everybody
/// ahead inside is served T_L,i + 1 at a time; between two of those, each of its siblings has it
/// once.
[[nodiscard]] inline std::int64_t tree_most_overtaken(const rma::topology& machine,
                                                      const locality_thresholds& t_l) {
  const int levels = machine.levels();
  const auto in_a_row = [&](int level) { return t_l[static_cast<std::size_t>(level - 1)] + 1; };
  const auto most_children = [&](int level) -> std::int64_t {  // of an element of `level`
    std::int64_t most = 0;
    std::vector<std::int64_t> of(static_cast<std::size_t>(machine.elements(level)), 0);
    const int children = level == levels ? machine.ranks() : machine.elements(level + 1);
    for (int c = 0; c < children; ++c) {
      const rma::rank_t r = level == levels ? c : machine.leader(level + 1, c);
      most = std::max(most, ++of[static_cast<std::size_t>(machine.element_of(r, level))]);
    }
    return most;
  };
  std::int64_t overtaken = 0;
  std::int64_t turns = 1;     // X: of the waiter's element
  std::int64_t acquires = 1;  // W: of one element in one turn
  for (int level = levels; level >= 2; --level) {
    turns *= (most_children(level) + in_a_row(level) - 1) / in_a_row(level) + 1;
    acquires *= in_a_row(level);
    overtaken += turns * (most_children(level - 1) - 1) * acquires;
  }
  return overtaken;
}

template <rma::port Port>
class queue_tree {
 public:
  using order = tree_status::order;

  /// One lock's words in the tree. A block of this shape lies at the same index on every rank; only
  /// leaders' are used.
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
      // The entry at `level` belongs to the element one level down; at level N to ourselves.
      if (level < levels_) at(entry_, level) = where.next(me.machine(), me.rank(), level + 1);
      at(here_, level) =
          level == levels_ || me.machine().same_node(at(entry_, level).home, me.rank());
    }
  }

  [[nodiscard]] int levels() const { return levels_; }

  /// What we know while we hold the lock: how often it was passed at each level.
  tree_status status;

  /// A participant that starts takes a queue node, and gives it back when it has left level N.
  void take_line() {
    line_ = me_.take_line();
    at(entry_, levels_) = line_[next];
    status = tree_status(order::enter);
  }
  void give_back_line() { me_.give_back(line_); }

  /// Listing 4, lines 2 to 20: enters the queue at `level` and waits. Returns what the predecessor
  /// said, or acquire_parent if there was none.
  order enter(int level) {
    const rma::word pred = rma::swap_now(port_, at(tail_, level), rma::to_word(at(entry_, level)));
    if (pred == rma::null_ref) return order::acquire_parent;
    // The predecessor learns where we wait; flushed, since it may be waiting for it.
    rma::put_now(port_, rma::from_word<rma::plain_cell>(pred), rma::to_word(line_[wait]));
    const auto told = tree_status::from(port_.await(line_[wait], rma::differs_from(0)));
    // One STATUS for all levels: while we wait at a level we head the queues below it, and nobody
    // but the predecessor at this level writes to us, once. A store is visible before what we post
    // after it takes effect (C12), so the next one to write finds it reset.
    port_.store(line_[wait], tree_status().bits());
    rma::ensure(told.what() != order::wait, "a predecessor says what to do");
    if (told.what() == order::enter) status = told;
    return told.what();
  }

  /// Enters the queue at `level` only if nobody is in it. 1 compare-swap.
  [[nodiscard]] bool try_enter(int level) {
    return rma::compare_swap_now(port_, at(tail_, level), rma::null_ref,
                                 rma::to_word(at(entry_, level))) == rma::null_ref;
  }

  /// Where the one behind us waits, if it has made itself visible; else null_ref.
  [[nodiscard]] rma::word successor(int level) {
    const rma::plain_cell entry = at(entry_, level);
    return at(here_, level) ? port_.load(entry) : rma::get_now(port_, entry);
  }

  /// Tells the one behind us at `level`, whereupon our entry is out of the queue. 1 put; flushed,
  /// else it may wait as long as we flush nothing else. The entry is left as it was found, without
  /// a link: by 1 more put where it lies on another node.
  void tell(int level, rma::word succ, tree_status what) {
    const rma::plain_cell entry = at(entry_, level);
    const auto waits = rma::from_word<rma::plain_cell>(succ);
    if (at(here_, level))
      port_.store(entry, rma::null_ref);
    else
      port_.put(entry, rma::null_ref);
    port_.put(waits, what.bits());
    port_.flush(waits.home);
    // Before we let go of our element's queue, since the next of the element uses the entry.
    if (!at(here_, level)) port_.flush(entry.home);
  }

  /// Listing 5, lines 13 to 23: takes our entry off the queue at `level`, or, if somebody is behind
  /// it (`succ`, when the caller knows), tells it `what`.
  void leave(int level, rma::word succ, tree_status what) {
    if (succ == rma::null_ref) {
      const rma::word entry = rma::to_word(at(entry_, level));
      if (rma::compare_swap_now(port_, at(tail_, level), entry, rma::null_ref) == entry) return;
      succ = await_successor(level);
    }
    tell(level, succ, what);
  }

  /// Whether somebody stands in the queue at `level`. 1 get.
  [[nodiscard]] bool occupied(int level) {
    return rma::get_now(port_, at(tail_, level)) != rma::null_ref;
  }

 private:
  // The words of our line (section 3.2.2). Lines and entries that are in no queue are all zero, as
  // the fabric gives them out: whoever finds a queue empty prepares nothing.
  static constexpr std::uint32_t next = 0;  // NEXT of our entry at level N
  static constexpr std::uint32_t wait = 1;  // STATUS: a tree_status, 0 while we must wait

  template <class T>
  [[nodiscard]] static T& at(std::array<T, most_levels>& of, int level) {
    return of[static_cast<std::size_t>(level - 1)];
  }

  // Somebody swapped itself in behind us and is about to write its link.
  rma::word await_successor(int level) {
    rma::ensure(me_.has_taken(line_), "only the holder releases");
    const rma::plain_cell entry = at(entry_, level);
    const auto linked = rma::differs_from(rma::null_ref);
    if (at(here_, level)) return port_.await(entry, linked);
    // Only where an element spans several nodes and its leader is on another one.
    return port_.poll(entry, linked, rma::backoff(200, 10'000));
  }

  rma::participant<Port>& me_;
  Port& port_;
  int levels_;
  rma::line line_;
  std::array<rma::nic_cell, most_levels> tail_{};
  std::array<rma::plain_cell, most_levels> entry_{};
  std::array<bool, most_levels> here_{};  // the entry is on our node
};

}  // namespace lockflight::lock
