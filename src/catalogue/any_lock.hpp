// A lock of any type behind one virtual call for each of its own, and what a lock offers.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/joined.hpp"
#include "lockflight/lock/concepts.hpp"

namespace lockflight::catalogue {

/// What a lock offers beside lock and unlock.
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

/// A participant's handle. A call that its lock does not offer throws std::logic_error: callers ask
/// for its abilities first.
class any_lock {
 public:
  any_lock() = default;
  any_lock(const any_lock&) = delete;
  any_lock& operator=(const any_lock&) = delete;
  virtual ~any_lock() = default;

  /// False only where the port's waits can be interrupted, and this one was.
  virtual bool lock() = 0;
  virtual void unlock() = 0;
  [[nodiscard]] virtual bool try_lock() = 0;
  [[nodiscard]] virtual bool try_lock_within(std::uint64_t nanoseconds) = 0;

  virtual bool lock_shared() = 0;
  virtual void unlock_shared() = 0;
  [[nodiscard]] virtual bool try_lock_shared() = 0;
  [[nodiscard]] virtual bool try_lock_shared_within(std::uint64_t nanoseconds) = 0;

  virtual bool lock_upgrade() = 0;
  virtual void unlock_upgrade() = 0;
  [[nodiscard]] virtual bool try_lock_upgrade() = 0;
  virtual void unlock_upgrade_and_lock() = 0;
  virtual void unlock_upgrade_and_lock_shared() = 0;
  virtual void unlock_and_lock_upgrade() = 0;
  virtual void unlock_and_lock_shared() = 0;
  [[nodiscard]] virtual bool try_unlock_shared_and_lock() = 0;
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

  bool lock() override {
    if constexpr (requires { lock_.lock_unless_interrupted(); })
      return lock_.lock_unless_interrupted();
    else
      return lock_.lock(), true;
  }
  void unlock() override { lock_.unlock(); }
  [[nodiscard]] bool try_lock() override {
    if constexpr (can.tries) return lock_.try_lock();
    lacks(Lock::about.name);
  }
  [[nodiscard]] bool try_lock_within([[maybe_unused]] std::uint64_t nanoseconds) override {
    if constexpr (can.times) return lock_.try_lock_within(nanoseconds);
    lacks(Lock::about.name);
  }

  bool lock_shared() override {
    if constexpr (requires { lock_.lock_shared_unless_interrupted(); })
      return lock_.lock_shared_unless_interrupted();
    else if constexpr (can.shares)
      return lock_.lock_shared(), true;
    else
      lacks(Lock::about.name);
  }
  void unlock_shared() override {
    if constexpr (can.shares) return lock_.unlock_shared();
    lacks(Lock::about.name);
  }
  [[nodiscard]] bool try_lock_shared() override {
    if constexpr (can.tries_shared) return lock_.try_lock_shared();
    lacks(Lock::about.name);
  }
  [[nodiscard]] bool try_lock_shared_within([[maybe_unused]] std::uint64_t nanoseconds) override {
    if constexpr (can.times_shared) return lock_.try_lock_shared_within(nanoseconds);
    lacks(Lock::about.name);
  }

  bool lock_upgrade() override {
    if constexpr (can.upgrades) return lock_.lock_upgrade(), true;
    lacks(Lock::about.name);
  }
  void unlock_upgrade() override {
    if constexpr (can.upgrades) return lock_.unlock_upgrade();
    lacks(Lock::about.name);
  }
  [[nodiscard]] bool try_lock_upgrade() override {
    if constexpr (can.upgrades) return lock_.try_lock_upgrade();
    lacks(Lock::about.name);
  }
  void unlock_upgrade_and_lock() override {
    if constexpr (can.upgrades) return lock_.unlock_upgrade_and_lock();
    lacks(Lock::about.name);
  }
  void unlock_upgrade_and_lock_shared() override {
    if constexpr (can.upgrades) return lock_.unlock_upgrade_and_lock_shared();
    lacks(Lock::about.name);
  }
  void unlock_and_lock_upgrade() override {
    if constexpr (can.upgrades) return lock_.unlock_and_lock_upgrade();
    lacks(Lock::about.name);
  }
  void unlock_and_lock_shared() override {
    if constexpr (can.upgrades) return lock_.unlock_and_lock_shared();
    lacks(Lock::about.name);
  }
  [[nodiscard]] bool try_unlock_shared_and_lock() override {
    if constexpr (can.upgrades) return lock_.try_unlock_shared_and_lock();
    lacks(Lock::about.name);
  }

 protected:
  Lock lock_;
};

}  // namespace lockflight::catalogue
