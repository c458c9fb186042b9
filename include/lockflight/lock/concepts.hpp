// The concepts of locks, with the std names: std's guards work with every lock. A handle belongs to
// one participant and is not recursive.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <type_traits>

#include "lockflight/lock/about.hpp"
#include "lockflight/rma/topology.hpp"

namespace lockflight::lock {

/// BasicLockable, with facts. A participant with several handles of a lock holds it by one of them
/// at a time.
template <class L>
concept exclusive = requires(L l) {
  { L::about } -> std::convertible_to<facts>;
  l.lock();
  l.unlock();
};

/// A lock whose lock() is two calls: take_ticket(), the doorway, in which a participant gets its
/// place in the order, and await_turn(). The first may wait, too, for others that are in the
/// doorway.
template <class L>
concept has_doorway = exclusive<L> && requires(L l) {
  l.take_ticket();
  l.await_turn();
};

/// Has shared holders too: works with std::shared_lock.
template <class L>
concept shared = exclusive<L> && requires(L l) {
  l.lock_shared();
  l.unlock_shared();
};

/// Lockable: an attempt that finds the lock taken withdraws and leaves no trace.
template <class L>
concept can_try = exclusive<L> && requires(L l) {
  { l.try_lock() } -> std::same_as<bool>;
};

template <class L>
concept can_try_shared = shared<L> && requires(L l) {
  { l.try_lock_shared() } -> std::same_as<bool>;
};

/// Can wait for a number of nanoseconds and then leave; with timed_names that is std's
/// TimedLockable.
template <class L>
concept can_time = can_try<L> && requires(L l, std::uint64_t nanoseconds) {
  { l.try_lock_within(nanoseconds) } -> std::same_as<bool>;
};

template <class L>
concept can_time_shared = can_try_shared<L> && requires(L l, std::uint64_t nanoseconds) {
  { l.try_lock_shared_within(nanoseconds) } -> std::same_as<bool>;
};

/// Has an upgrade holder: one at a time, beside readers, and it can become the exclusive holder.
/// The names are those of Boost's UpgradeLockable.
template <class L>
concept can_upgrade = shared<L> && requires(L l) {
  l.lock_upgrade();
  l.unlock_upgrade();
  l.unlock_upgrade_and_lock();
  l.unlock_upgrade_and_lock_shared();
  l.unlock_and_lock_upgrade();
  l.unlock_and_lock_shared();
  { l.try_lock_upgrade() } -> std::same_as<bool>;
  { l.try_unlock_shared_and_lock() } -> std::same_as<bool>;
};

/// Says how often later participants overtake a waiter: a std::int64_t, or a std::optional of one,
/// which is std::nullopt on a machine where no number bounds it.
template <class L>
concept bounds_overtaking =
    requires(const rma::topology& machine, const typename L::parameters& set) {
      { L::most_overtaken(machine, set) } -> std::convertible_to<std::optional<std::int64_t>>;
    };

/// Guards only the operations that its holder does through it, at the release. Before that it
/// excludes no participant, so it is no Lockable of std, whatever its names.
template <class L>
concept defers = L::about.defers;

}  // namespace lockflight::lock
