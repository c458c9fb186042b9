// A lock of any type behind virtual calls, and what a lock offers.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/joined.hpp"
#include "lockflight/lock/concepts.hpp"
#include "lockflight/mode.hpp"

namespace lockflight::catalogue {

/// The calls that a lock offers beside lock and unlock.
struct abilities {
  bool tries = false;
  bool times = false;
  bool shares = false;
  bool tries_shared = false;
  bool times_shared = false;
  bool upgrades = false;
};

template <class Lock>
constexpr abilities abilities_of{
    .tries = lock::can_try<Lock>,
    .times = lock::can_time<Lock>,
    .shares = lock::shared<Lock>,
    .tries_shared = lock::can_try_shared<Lock>,
    .times_shared = lock::can_time_shared<Lock>,
    .upgrades = lock::can_upgrade<Lock>,
};

/// "flight, flight-rw": the rows that have an ability, for errors that say what is accepted. A row
/// has `about` and `can`.
template <class Rows>
[[nodiscard]] std::string names_of_those_with(bool abilities::*ability, const Rows& rows) {
  std::vector<std::string_view> names;
  for (const auto& row : rows)
    if (row.can.*ability) names.push_back(row.about.name);
  return joined(names);
}

/// How a participant holds a lock: in a mode, or shared as its upgrade holder. At most one of the
/// participants that share a lock is that; it can become exclusive without a writer in between.
enum class hold : std::uint8_t {
  none = static_cast<std::uint8_t>(mode::none),
  shared = static_cast<std::uint8_t>(mode::shared),
  exclusive = static_cast<std::uint8_t>(mode::exclusive),
  upgrade,
};

/// A participant's handle. A call that its lock does not offer throws std::logic_error: callers ask
/// for its abilities first.
class any_lock {
 public:
  any_lock() = default;
  any_lock(const any_lock&) = delete;
  any_lock& operator=(const any_lock&) = delete;
  virtual ~any_lock() = default;

  /// False if the time was over first, or the wait was interrupted, which only some ports can.
  [[nodiscard]] virtual bool acquire(mode as, limit patience) = 0;
  virtual void release(mode as) = 0;
  /// Acquires or releases an upgrade hold, or makes one hold another without a writer in between.
  /// From shared to exclusive is an attempt always. An acquire is one if the limit says so, and
  /// waits for ever otherwise; the others have no use for the limit. False: it was an attempt, and
  /// has changed nothing.
  [[nodiscard]] virtual bool turn(hold from, hold to, limit patience) = 0;
};

[[noreturn]] inline void lacks(std::string_view name) {
  throw std::logic_error(std::string(name) + " does not offer that");
}

/// Makes the calls of an any_lock, or of a class that has more of them, those of a lock.
template <class Base, class Lock>
class lock_behind : public Base {
  static constexpr abilities can = abilities_of<Lock>;

 public:
  template <class... Arguments>
  explicit lock_behind(Arguments&&... arguments) : lock_(std::forward<Arguments>(arguments)...) {}

  // Each case is a function of its own: in one that had them all, the frequent ones, which are
  // short, would save and restore registers for the others.
  [[nodiscard]] bool acquire(mode as, limit patience) override {
    if (patience.is_for_ever()) return as == mode::exclusive ? wait_alone() : wait_shared();
    return as == mode::exclusive ? alone_within(patience) : shared_within(patience);
  }
  void release(mode as) override { as == mode::exclusive ? release_alone() : release_shared(); }
  [[nodiscard]] bool turn([[maybe_unused]] hold from, [[maybe_unused]] hold to,
                          [[maybe_unused]] limit patience) override {
    if constexpr (can.upgrades) {
      if (from == hold::none && to == hold::upgrade) {
        if (patience.is_attempt()) return lock_.try_lock_upgrade();
        return lock_.lock_upgrade(), true;
      }
      if (from == hold::shared && to == hold::exclusive) return lock_.try_unlock_shared_and_lock();
      if (from == hold::upgrade) return turn_upgrade_hold(to), true;
      if (from == hold::exclusive && to == hold::shared)
        return lock_.unlock_and_lock_shared(), true;
      if (from == hold::exclusive && to == hold::upgrade)
        return lock_.unlock_and_lock_upgrade(), true;
    }
    lacks(Lock::about.name);
  }

 protected:
  Lock lock_;

 private:
  [[gnu::noinline]] bool wait_alone() {
    if constexpr (requires { lock_.lock_unless_interrupted(); })
      return lock_.lock_unless_interrupted();
    else
      return lock_.lock(), true;
  }
  [[gnu::noinline]] bool wait_shared() {
    if constexpr (requires { lock_.lock_shared_unless_interrupted(); })
      return lock_.lock_shared_unless_interrupted();
    else if constexpr (can.shares)
      return lock_.lock_shared(), true;
    else
      lacks(Lock::about.name);
  }
  [[gnu::noinline]] bool alone_within(limit patience) {
    if (patience.is_attempt()) {
      if constexpr (can.tries) return lock_.try_lock();
    } else if constexpr (can.times) {
      return lock_.try_lock_within(patience.nanoseconds());
    }
    lacks(Lock::about.name);
  }
  [[gnu::noinline]] bool shared_within(limit patience) {
    if (patience.is_attempt()) {
      if constexpr (can.tries_shared) return lock_.try_lock_shared();
    } else if constexpr (can.times_shared) {
      return lock_.try_lock_shared_within(patience.nanoseconds());
    }
    lacks(Lock::about.name);
  }
  [[gnu::noinline]] void release_alone() { lock_.unlock(); }
  [[gnu::noinline]] void release_shared() {
    if constexpr (can.shares) return lock_.unlock_shared();
    lacks(Lock::about.name);
  }
  void turn_upgrade_hold(hold to)
    requires(can.upgrades)
  {
    if (to == hold::exclusive) return lock_.unlock_upgrade_and_lock();
    if (to == hold::shared) return lock_.unlock_upgrade_and_lock_shared();
    lock_.unlock_upgrade();
  }
};

}  // namespace lockflight::catalogue
