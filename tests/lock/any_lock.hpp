// Locks behind calls that do not say which lock it is: what a test does with a lock is compiled
// once for a fabric, and not once more for each lock.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "subjects.hpp"

namespace lockflight::test {

/// What a lock offers beside lock and unlock.
struct abilities {
  bool tries = false;
  bool times = false;
  bool shares = false;
  bool tries_shared = false;
  bool times_shared = false;
  bool upgrades = false;
};

/// A participant's handle. A call that its lock does not offer throws.
class any_lock {
 public:
  any_lock() = default;
  any_lock(const any_lock&) = delete;
  any_lock& operator=(const any_lock&) = delete;
  virtual ~any_lock() = default;

  virtual void lock() = 0;
  virtual void unlock() = 0;
  [[nodiscard]] virtual bool try_lock() = 0;
  [[nodiscard]] virtual bool try_lock_within(std::uint64_t nanoseconds) = 0;

  virtual void lock_shared() = 0;
  virtual void unlock_shared() = 0;
  [[nodiscard]] virtual bool try_lock_shared() = 0;
  [[nodiscard]] virtual bool try_lock_shared_within(std::uint64_t nanoseconds) = 0;

  virtual void lock_upgrade() = 0;
  virtual void unlock_upgrade() = 0;
  [[nodiscard]] virtual bool try_lock_upgrade() = 0;
  virtual void unlock_upgrade_and_lock() = 0;
  virtual void unlock_upgrade_and_lock_shared() = 0;
  virtual void unlock_and_lock_upgrade() = 0;
  virtual void unlock_and_lock_shared() = 0;
  [[nodiscard]] virtual bool try_unlock_shared_and_lock() = 0;

  /// One more handle of the same participant.
  [[nodiscard]] virtual std::unique_ptr<any_lock> another() const = 0;
};

/// The sets of parameters that a lock is tested with on one machine, and locks that have them.
template <rma::port Port>
class any_sets {
 public:
  any_sets() = default;
  any_sets(const any_sets&) = delete;
  any_sets& operator=(const any_sets&) = delete;
  virtual ~any_sets() = default;

  [[nodiscard]] virtual std::size_t count() const = 0;
  /// All participants make the same locks in the same order.
  [[nodiscard]] virtual std::unique_ptr<any_lock> make(rma::participant<Port>& me, std::size_t set,
                                                       rma::rank_t home) const = 0;
};

/// Chooses one of so many candidates.
using choice = std::function<std::size_t(std::size_t candidates)>;

/// One number of a set of parameters.
struct any_parameter {
  std::string_view name;
  std::int64_t& value;
  std::int64_t min;
  std::int64_t max;
};

template <class Parameters>
[[nodiscard]] std::vector<any_parameter> parameters_of(Parameters& set) {
  std::vector<any_parameter> all;
  for (const auto& p : Parameters::all()) all.push_back({p.name, p.of(set), p.min, p.max});
  return all;
}

/// How the sets of a test are made.
struct how_to_choose {
  static constexpr std::size_t most = 3;

  /// For each set that is not the defaults.
  std::array<choice, most> sets;
  /// Changes the defaults of one of a table of locks, for a lock that has others there.
  std::function<void(std::vector<any_parameter>)> in_table;
  void (*change)(std::vector<any_parameter>, const rma::topology&, const choice&);
};

namespace detail {

[[noreturn]] inline void lacks(std::string_view name) {
  throw std::logic_error(std::string(name) + " does not offer that");
}

// Neither has anything of the standard library that is made for its type: there are many of them.
template <class Lock, class Port>
class handle_of final : public any_lock {
 public:
  using cells = typename Lock::cells;
  using parameters = typename Lock::parameters;

  handle_of(rma::participant<Port>& me, const cells& where, const parameters& set)
      : me_(me), where_(where), set_(set), lock_(me, where, set) {}

  void lock() override { lock_.lock(); }
  void unlock() override { lock_.unlock(); }
  [[nodiscard]] bool try_lock() override {
    if constexpr (lock::can_try<Lock>) return lock_.try_lock();
    lacks(Lock::about.name);
  }
  [[nodiscard]] bool try_lock_within([[maybe_unused]] std::uint64_t nanoseconds) override {
    if constexpr (lock::can_time<Lock>) return lock_.try_lock_within(nanoseconds);
    lacks(Lock::about.name);
  }

  void lock_shared() override {
    if constexpr (lock::shared<Lock>) return lock_.lock_shared();
    lacks(Lock::about.name);
  }
  void unlock_shared() override {
    if constexpr (lock::shared<Lock>) return lock_.unlock_shared();
    lacks(Lock::about.name);
  }
  [[nodiscard]] bool try_lock_shared() override {
    if constexpr (lock::can_try_shared<Lock>) return lock_.try_lock_shared();
    lacks(Lock::about.name);
  }
  [[nodiscard]] bool try_lock_shared_within([[maybe_unused]] std::uint64_t nanoseconds) override {
    if constexpr (lock::can_time_shared<Lock>) return lock_.try_lock_shared_within(nanoseconds);
    lacks(Lock::about.name);
  }

  void lock_upgrade() override {
    if constexpr (lock::can_upgrade<Lock>) return lock_.lock_upgrade();
    lacks(Lock::about.name);
  }
  void unlock_upgrade() override {
    if constexpr (lock::can_upgrade<Lock>) return lock_.unlock_upgrade();
    lacks(Lock::about.name);
  }
  [[nodiscard]] bool try_lock_upgrade() override {
    if constexpr (lock::can_upgrade<Lock>) return lock_.try_lock_upgrade();
    lacks(Lock::about.name);
  }
  void unlock_upgrade_and_lock() override {
    if constexpr (lock::can_upgrade<Lock>) return lock_.unlock_upgrade_and_lock();
    lacks(Lock::about.name);
  }
  void unlock_upgrade_and_lock_shared() override {
    if constexpr (lock::can_upgrade<Lock>) return lock_.unlock_upgrade_and_lock_shared();
    lacks(Lock::about.name);
  }
  void unlock_and_lock_upgrade() override {
    if constexpr (lock::can_upgrade<Lock>) return lock_.unlock_and_lock_upgrade();
    lacks(Lock::about.name);
  }
  void unlock_and_lock_shared() override {
    if constexpr (lock::can_upgrade<Lock>) return lock_.unlock_and_lock_shared();
    lacks(Lock::about.name);
  }
  [[nodiscard]] bool try_unlock_shared_and_lock() override {
    if constexpr (lock::can_upgrade<Lock>) return lock_.try_unlock_shared_and_lock();
    lacks(Lock::about.name);
  }

  [[nodiscard]] std::unique_ptr<any_lock> another() const override {
    return std::unique_ptr<any_lock>(new handle_of(me_, where_, set_));
  }

 private:
  rma::participant<Port>& me_;
  cells where_;
  parameters set_;
  Lock lock_;
};

template <class Lock, class Port>
class sets_of final : public any_sets<Port> {
 public:
  using parameters = typename Lock::parameters;

  sets_of(const rma::topology& machine, const how_to_choose& how) {
    if (std::size(parameters::all()) == 0) return;
    for (const choice& choose : how.sets)
      how.change(parameters_of(sets_[count_++]), machine, choose);
    const lock::table_size few_locks{1, machine.ranks()};
    if constexpr (requires(const parameters& p) { p.in_table(few_locks); }) {
      sets_[count_] = lock::in_table(parameters{}, few_locks);
      how.in_table(parameters_of(sets_[count_++]));
    }
  }

  [[nodiscard]] std::size_t count() const override { return count_; }

  [[nodiscard]] std::unique_ptr<any_lock> make(rma::participant<Port>& me, std::size_t set,
                                               rma::rank_t home) const override {
    const parameters& chosen = sets_.at(set);
    return std::unique_ptr<any_lock>(new handle_of<Lock, Port>(
        me, Lock::cells::place(me.cells(), me.machine(), chosen, home), chosen));
  }

 private:
  std::array<parameters, 2 + how_to_choose::most> sets_{};
  std::size_t count_ = 1;  // the defaults
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

}  // namespace detail

/// A lock on a fabric.
template <class Fabric>
struct any_subject {
  using port = typename Fabric::port_type;

  std::string name;  ///< of the fabric and the lock, as GoogleTest wants names
  abilities can;
  std::unique_ptr<any_sets<port>> (*sets)(const rma::topology&, const how_to_choose&);
};

/// Every lock on a fabric, and the baselines where they run.
template <class Fabric>
[[nodiscard]] std::vector<any_subject<Fabric>> all_on() {
  using port = typename Fabric::port_type;
  std::vector<any_subject<Fabric>> all;
  const auto add = [&]<template <class> class Lock>(lock::family<Lock>) {
    using one = Lock<port>;
    std::string name = std::string(Fabric::name) + "_" + std::string(one::about.name);
    std::replace(name.begin(), name.end(), '-', '_');
    all.push_back({std::move(name), detail::abilities_of<one>,
                   [](const rma::topology& machine,
                      const how_to_choose& how) -> std::unique_ptr<any_sets<port>> {
                     return std::unique_ptr<any_sets<port>>(
                         new detail::sets_of<one, port>(machine, how));
                   }});
  };
  lock::all::for_each(add);
  if constexpr (rma::native_port<port>) baselines::for_each(add);
  return all;
}

}  // namespace lockflight::test
