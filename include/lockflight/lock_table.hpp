// A table of locks: many locks of one kind, spread evenly over the ranks. Each lock has a reference
// that fits into a word, so programs can store it in a cell or send it.
//
// Source: the distributed lock table of "ALock: Asymmetric Lock Primitive for RDMA Systems"
// (section 6), for locks of any kind.
//
// Cost: participants make the table without communication. Each lock takes the words that its kind
// needs. Queue nodes belong to the participants, not to the locks.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <deque>
#include <memory_resource>
#include <stdexcept>
#include <string>
#include <vector>

#include "lockflight/lock/about.hpp"
#include "lockflight/lock/create.hpp"
#include "lockflight/rma/cxx20.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight {

/// Refers to a lock of a table: the address of the lock, which is valid on every rank. It has 8
/// bytes and is trivially copyable, so it can be stored in a cell or sent. Zero refers to no lock.
class lock_reference {
 public:
  constexpr lock_reference() = default;
  constexpr lock_reference(rma::rank_t home, std::uint32_t offset)
      : word_(rma::to_word(rma::plain_cell{home, offset})) {}

  [[nodiscard]] static constexpr lock_reference from_word(rma::word w) {
    lock_reference r;
    r.word_ = w;
    return r;
  }
  [[nodiscard]] constexpr rma::word word() const { return word_; }

  /// The rank that is the home of the lock.
  [[nodiscard]] constexpr rma::rank_t home() const { return cell().home; }
  /// The index of the lock's first word in the segment of its home.
  [[nodiscard]] constexpr std::uint32_t offset() const { return cell().index; }

  friend constexpr auto operator<=>(const lock_reference&, const lock_reference&) = default;

 private:
  [[nodiscard]] constexpr rma::plain_cell cell() const {
    return rma::from_word<rma::plain_cell>(word_);
  }
  rma::word word_ = rma::null_ref;
};
static_assert(sizeof(lock_reference) == sizeof(rma::word));

/// `lock_table<lock::d_mcs, shm::port> table(me, 1000); std::scoped_lock hold(table[17]);`
///
/// The home of lock i is rank i mod P, with P ranks. Each participant has a handle of every lock. A
/// parameter that is not set may have another default in a table than elsewhere (lock::in_table).
template <template <class> class Lock, rma::port Port>
class lock_table {
 public:
  using lock_type = lock::created<Lock<Port>, Port>;
  using parameters = typename lock_type::parameters;

  /// All participants must construct the table at the same point of their layout. This takes no
  /// communication. Throws std::invalid_argument if there are no locks, and std::length_error if
  /// the segments are full.
  lock_table(rma::participant<Port>& me, std::uint32_t locks, const parameters& set = {})
      : machine_(me.machine()), handles_(me.memory()), offsets_(me.memory()) {
    if (locks == 0) throw std::invalid_argument("0 locks (accepted: at least 1 in a table)");
    const parameters of_each = lock::in_table(set, {locks, machine_.ranks()});
    offsets_.reserve(locks);
    for (std::uint32_t i = 0; i < locks; ++i) {
      offsets_.push_back(me.cells().used());
      handles_.emplace_back(
          me, lock_type::cells::place(me.cells(), me.machine(), of_each, home_of(i)), of_each);
    }
  }

  /// How many words of each rank's segment a table takes. Throws std::length_error if these are
  /// more than a segment can have.
  [[nodiscard]] static std::uint32_t words(const rma::topology& machine, std::uint32_t locks,
                                           const parameters& set = {}) {
    const parameters of_each = lock::in_table(set, {locks, machine.ranks()});
    rma::layout in(~std::uint32_t{0});
    for (std::uint32_t i = 0; i < locks; ++i)
      static_cast<void>(lock_type::cells::place(
          in, machine, of_each,
          static_cast<rma::rank_t>(i % static_cast<std::uint32_t>(machine.ranks()))));
    return in.used();
  }

  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(offsets_.size()); }

  /// The rank that is the home of lock `i`.
  [[nodiscard]] rma::rank_t home_of(std::uint32_t i) const {
    return static_cast<rma::rank_t>(i % static_cast<std::uint32_t>(machine_.ranks()));
  }

  /// This participant's handle of lock `i` < size().
  [[nodiscard]] lock_type& operator[](std::uint32_t i) { return handles_[i]; }

  /// The reference of lock `i`, which is the same on every rank.
  [[nodiscard]] lock_reference reference(std::uint32_t i) const {
    return {home_of(i), offsets_[i]};
  }

  /// This participant's handle of the lock with this reference, by a binary search among size()
  /// numbers. Throws std::out_of_range if the table has no such lock.
  [[nodiscard]] lock_type& at(lock_reference named) {
    const auto found = std::lower_bound(offsets_.begin(), offsets_.end(), named.offset());
    const auto i = static_cast<std::uint32_t>(found - offsets_.begin());
    if (i == size() || reference(i) != named)
      throw std::out_of_range("the table of " + std::to_string(size()) +
                              " locks has none at word " + std::to_string(named.offset()) +
                              " of rank " + std::to_string(named.home()));
    return handles_[i];
  }

 private:
  const rma::topology& machine_;
  std::pmr::deque<lock_type> handles_;       // at addresses that do not change
  std::pmr::vector<std::uint32_t> offsets_;  // [i]: where lock i's words begin, ascending
};

}  // namespace lockflight
