// The locks by name. A virtual call costs little beside an operation on shared memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/joined.hpp"
#include "bindings/c/error.hpp"
#include "bindings/c/settings.hpp"
#include "catalogue/any_lock.hpp"
#include "lockflight/baseline/pthread.hpp"
#include "lockflight/lock/all.hpp"
#include "lockflight/lock/create.hpp"

namespace lockflight::capi {

using catalogue::any_lock;

/// The lock that a caller asks for.
struct lock_request {
  std::string name;
  lock::parameter_values set;
  rma::rank_t home = 0;
  bool shares = false;  ///< the lock must have shared holders
};

/// A lock of the lock table on this fabric.
template <rma::port Port>
struct lock_row {
  lock::facts about;
  catalogue::abilities can;
  std::unique_ptr<any_lock> (*make)(rma::participant<Port>&, const lock_request&);
};

template <template <class> class Lock, rma::port Port>
[[nodiscard]] lock_row<Port> row_of() {
  using type = Lock<Port>;
  using parameters = typename type::parameters;
  using behind = catalogue::lock_behind<any_lock, lock::created<type, Port>>;
  return {type::about, catalogue::abilities_of<type>,
          [](rma::participant<Port>& me, const lock_request& what) -> std::unique_ptr<any_lock> {
            const auto set = parameters_from<parameters>(what.name, what.set);
            const rma::layout before = me.cells();
            try {
              return std::make_unique<behind>(me, set, what.home);
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

struct made_lock {
  std::unique_ptr<any_lock> it;
  catalogue::abilities can;
};

/// Makes the requested lock. Throws refusal, std::invalid_argument or std::length_error; the layout
/// is unchanged then.
template <rma::port Port>
[[nodiscard]] made_lock make_lock(rma::participant<Port>& me, const lock_request& what) {
  const auto can = [&](const lock_row<Port>& row) {
    return !what.shares || row.about.what == lock::kind::rw;
  };
  std::vector<std::string_view> accepted;
  const lock_row<Port>* named = nullptr;
  for (const lock_row<Port>& row : lock_rows<Port>()) {
    if (row.about.name == what.name) named = &row;
    if (can(row)) accepted.push_back(row.about.name);
  }
  if (named == nullptr || !can(*named))
    throw refusal(named == nullptr ? LOCKFLIGHT_UNKNOWN : LOCKFLIGHT_WRONG_KIND,
                  "lock '" + what.name + "' (accepted" +
                      (what.shares ? " where readers share: " : ": ") +
                      lockflight::joined(accepted) + ")");
  const int ranks = me.machine().ranks();
  if (what.home < 0 || what.home >= ranks)
    throw std::invalid_argument("home " + std::to_string(what.home) + " (accepted: 0 to " +
                                std::to_string(ranks - 1) + ", the ranks)");
  return {named->make(me, what), named->can};
}

}  // namespace lockflight::capi
