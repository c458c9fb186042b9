// The locks by name, behind one virtual call each.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "capi/error.hpp"
#include "capi/settings.hpp"
#include "lockflight/baseline/pthread.hpp"
#include "lockflight/lock/all.hpp"
#include "lockflight/lock/concepts.hpp"
#include "lockflight/lock/create.hpp"

namespace lockflight::capi {

/// A lock of any type on any fabric. A virtual call costs little beside an operation on shared
/// memory.
class any_lock {
 public:
  virtual ~any_lock() = default;

  virtual void lock() = 0;
  [[nodiscard]] virtual bool try_lock() = 0;
  virtual void unlock() = 0;
  /// Throws refusal if waiters of this lock cannot leave.
  [[nodiscard]] virtual bool try_lock_for(std::uint64_t nanoseconds) = 0;
  [[nodiscard]] virtual bool try_lock_shared_for(std::uint64_t nanoseconds) = 0;
  // Of reader-writer locks only; the caller has checked the kind.
  virtual void lock_shared() = 0;
  [[nodiscard]] virtual bool try_lock_shared() = 0;
  virtual void unlock_shared() = 0;

  // Of locks that can be upgraded only; the caller has checked can_upgrade.
  [[nodiscard]] virtual bool can_upgrade() const = 0;
  virtual void lock_upgrade() = 0;
  [[nodiscard]] virtual bool try_lock_upgrade() = 0;
  virtual void unlock_upgrade() = 0;
  virtual void unlock_upgrade_and_lock() = 0;
  virtual void unlock_upgrade_and_lock_shared() = 0;
  virtual void unlock_and_lock_upgrade() = 0;
  virtual void unlock_and_lock_shared() = 0;
  [[nodiscard]] virtual bool try_unlock_shared_and_lock() = 0;
};

/// The lock that a caller asks for.
struct lock_request {
  std::string name;
  lock::parameter_values set;
  rma::rank_t home = 0;
  bool shares = false;  ///< it must have shared holders
};

template <template <class> class Lock, rma::port Port>
class lock_on final : public any_lock {
 public:
  lock_on(rma::participant<Port>& me, const typename Lock<Port>::parameters& set, rma::rank_t home)
      : lock_(me, set, home) {}

  void lock() override { lock_.lock(); }
  bool try_lock() override { return lock_.try_lock(); }
  void unlock() override { lock_.unlock(); }
  bool try_lock_for(std::uint64_t nanoseconds) override {
    if constexpr (lock::can_time<Lock<Port>>) return lock_.try_lock_within(nanoseconds);
    cannot_time();
  }
  bool try_lock_shared_for(std::uint64_t nanoseconds) override {
    if constexpr (lock::can_time_shared<Lock<Port>>)
      return lock_.try_lock_shared_within(nanoseconds);
    cannot_time();
  }
  void lock_shared() override {
    if constexpr (shares) lock_.lock_shared();
  }
  bool try_lock_shared() override {
    if constexpr (shares) return lock_.try_lock_shared();
    return false;
  }
  void unlock_shared() override {
    if constexpr (shares) lock_.unlock_shared();
  }

  bool can_upgrade() const override { return upgrades; }
  void lock_upgrade() override {
    if constexpr (upgrades) lock_.lock_upgrade();
  }
  bool try_lock_upgrade() override {
    if constexpr (upgrades) return lock_.try_lock_upgrade();
    return false;
  }
  void unlock_upgrade() override {
    if constexpr (upgrades) lock_.unlock_upgrade();
  }
  void unlock_upgrade_and_lock() override {
    if constexpr (upgrades) lock_.unlock_upgrade_and_lock();
  }
  void unlock_upgrade_and_lock_shared() override {
    if constexpr (upgrades) lock_.unlock_upgrade_and_lock_shared();
  }
  void unlock_and_lock_upgrade() override {
    if constexpr (upgrades) lock_.unlock_and_lock_upgrade();
  }
  void unlock_and_lock_shared() override {
    if constexpr (upgrades) lock_.unlock_and_lock_shared();
  }
  bool try_unlock_shared_and_lock() override {
    if constexpr (upgrades) return lock_.try_unlock_shared_and_lock();
    return false;
  }

 private:
  static constexpr bool shares = lock::can_try_shared<Lock<Port>>;
  static constexpr bool upgrades = lock::can_upgrade<Lock<Port>>;

  [[noreturn]] static void cannot_time() {
    throw refusal(LOCKFLIGHT_WRONG_KIND, "lock '" + std::string(Lock<Port>::about.name) +
                                             "': a waiter cannot leave (accepted for that: "
                                             "dlm-server, flight, flight-rw)");
  }

  lock::created<Lock<Port>, Port> lock_;
};

/// A lock of the lock table on this fabric.
template <rma::port Port>
struct lock_row {
  lock::facts about;
  std::unique_ptr<any_lock> (*make)(rma::participant<Port>&, const lock_request&);
};

template <template <class> class Lock, rma::port Port>
[[nodiscard]] lock_row<Port> row_of() {
  using parameters = typename Lock<Port>::parameters;
  return {Lock<Port>::about,
          [](rma::participant<Port>& me, const lock_request& what) -> std::unique_ptr<any_lock> {
            const auto set = parameters_from<parameters>(what.name, what.set);
            const rma::layout before = me.cells();
            try {
              return std::make_unique<lock_on<Lock, Port>>(me, set, what.home);
            } catch (...) {
              me.cells() = before;  // the lock may have found words for some of its cells only
              throw;
            }
          }};
}

/// Every lock that runs on the fabric, in the order of the lock table.
template <rma::port Port>
[[nodiscard]] const std::vector<lock_row<Port>>& lock_rows() {
  static const std::vector<lock_row<Port>> all = [] {
    std::vector<lock_row<Port>> found;
    const auto add = [&]<template <class> class Lock>(lock::family<Lock>) {
      found.push_back(row_of<Lock, Port>());
    };
    lock::all::for_each(add);
    if constexpr (rma::native_port<Port>) {
      add(lock::family<baseline::pthread_mutex>{});
      add(lock::family<baseline::pthread_rwlock>{});
    }
    return found;
  }();
  return all;
}

/// Makes the requested lock. Throws refusal, std::invalid_argument or std::length_error; the layout
/// is unchanged then.
template <rma::port Port>
[[nodiscard]] std::unique_ptr<any_lock> make_lock(rma::participant<Port>& me,
                                                  const lock_request& what) {
  const auto can = [&](const lock_row<Port>& row) {
    return !what.shares || row.about.what == lock::kind::rw;
  };
  std::string accepted;
  const lock_row<Port>* named = nullptr;
  for (const lock_row<Port>& row : lock_rows<Port>()) {
    if (row.about.name == what.name) named = &row;
    if (can(row)) accepted += (accepted.empty() ? "" : ", ") + std::string(row.about.name);
  }
  if (named == nullptr || !can(*named))
    throw refusal(named == nullptr ? LOCKFLIGHT_UNKNOWN : LOCKFLIGHT_WRONG_KIND,
                  "lock '" + what.name + "' (accepted" +
                      (what.shares ? " where readers share: " : ": ") + accepted + ")");
  const int ranks = me.machine().ranks();
  if (what.home < 0 || what.home >= ranks)
    throw std::invalid_argument("home " + std::to_string(what.home) + " (accepted: 0 to " +
                                std::to_string(ranks - 1) + ", the ranks)");
  return named->make(me, what);
}

}  // namespace lockflight::capi
