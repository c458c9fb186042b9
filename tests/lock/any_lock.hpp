// Locks behind calls that do not say which lock it is: what a test does with a lock is compiled
// once for a fabric, and not once more for each lock.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "catalogue/any_lock.hpp"
#if defined(LOCKFLIGHT_TEST_ON_SIM)
#include "lab/printed/printed.hpp"
#endif
#include "lockflight/timed_names.hpp"
#include "subjects.hpp"

namespace lockflight::test {

using catalogue::abilities;
using catalogue::any_lock;

/// A participant's handle, which can make one more. It has the names of the standard library.
class copyable_lock : public any_lock, public shared_lock_names<copyable_lock> {
 public:
  /// One more handle of the same participant.
  [[nodiscard]] virtual std::unique_ptr<copyable_lock> another() const = 0;
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
  [[nodiscard]] virtual std::unique_ptr<copyable_lock> make(rma::participant<Port>& me,
                                                            std::size_t set,
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

template <class Lock, class Port>
class handle_of final : public catalogue::lock_behind<copyable_lock, Lock> {
 public:
  using cells = typename Lock::cells;
  using parameters = typename Lock::parameters;

  handle_of(rma::participant<Port>& me, const cells& where, const parameters& set)
      : catalogue::lock_behind<copyable_lock, Lock>(me, where, set),
        me_(me),
        where_(where),
        set_(set) {}

  [[nodiscard]] std::unique_ptr<copyable_lock> another() const override {
    return std::unique_ptr<copyable_lock>(new handle_of(me_, where_, set_));
  }

 private:
  rma::participant<Port>& me_;
  cells where_;
  parameters set_;
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

  [[nodiscard]] std::unique_ptr<copyable_lock> make(rma::participant<Port>& me, std::size_t set,
                                                    rma::rank_t home) const override {
    const parameters& chosen = sets_.at(set);
    return std::unique_ptr<copyable_lock>(new handle_of<Lock, Port>(
        me, Lock::cells::place(me.cells(), me.machine(), chosen, home), chosen));
  }

 private:
  std::array<parameters, 2 + how_to_choose::most> sets_{};
  std::size_t count_ = 1;  // the defaults
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

/// Every lock on a fabric, the baselines where they run, and on the simulator the locks as printed
/// that hold what they promise. (tests/lab/mutants/listing_test.cpp shows that rma-rw-listing does
/// not.)
template <class Fabric>
[[nodiscard]] std::vector<any_subject<Fabric>> all_on() {
  using port = typename Fabric::port_type;
  std::vector<any_subject<Fabric>> all;
  const auto add = [&]<template <class> class Lock>(lock::family<Lock>) {
    using one = Lock<port>;
    std::string name = std::string(Fabric::name) + "_" + std::string(one::about.name);
    std::replace(name.begin(), name.end(), '-', '_');
    all.push_back({std::move(name), catalogue::abilities_of<one>,
                   [](const rma::topology& machine,
                      const how_to_choose& how) -> std::unique_ptr<any_sets<port>> {
                     return std::unique_ptr<any_sets<port>>(
                         new detail::sets_of<one, port>(machine, how));
                   }});
  };
  lock::all::for_each(add);
  if constexpr (rma::native_port<port>) baselines::for_each(add);
#if defined(LOCKFLIGHT_TEST_ON_SIM)
  catalogue::printed::for_each([&]<template <class> class Lock>(lock::family<Lock> of) {
    if constexpr (!std::is_same_v<lock::family<Lock>, lock::family<lock::rma_rw_listing>>) add(of);
  });
#endif
  return all;
}

}  // namespace lockflight::test
