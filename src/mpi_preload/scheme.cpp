#include "mpi_preload/scheme.hpp"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "base/joined.hpp"
#include "lockflight/lock/all.hpp"
#include "lockflight/lock/window/window_global.hpp"
#include "lockflight/lock/window/window_locks.hpp"
#include "mpi_preload/zeroed_array.hpp"

namespace lockflight::mpi_preload {
namespace {

using participant = rma::participant<mpi::port>;

// The window's own lock if MPI has the locks: the queue of a target does not exclude others.
template <rma::port Port>
struct left_to_mpi {
  static constexpr const char* name = way_of_mpi;
  using port = Port;
  struct cells {
    static cells place(rma::layout&, const rma::topology&, rma::rank_t) { return {}; }
  };

  left_to_mpi(participant&, const cells&) {}
  void lock_all() {}
  void unlock_all() {}
  void lock_one() {}
  void unlock_one() {}
};

template <template <class> class Target, template <class> class Way>
class scheme_of final : public scheme {
  using door = lock::whole_window<Way<mpi::port>>;
  using handle = lock::window_lock<Target, door, mpi::port>;

 public:
  using places = lock::window_layout<Target, Way<mpi::port>>;
  using parameters = typename places::parameters;

  scheme_of(participant& me, const parameters& set)
      : me_(me),
        places_(me.cells(), me.machine(), set),
        door_(me, places_.window()),
        handles_(static_cast<std::size_t>(me.machine().ranks())) {}

  void lock(int target) override { on(target).lock(); }
  void unlock(int target) override { on(target).unlock(); }
  void lock_shared(int target) override { on(target).lock_shared(); }
  void unlock_shared(int target) override { on(target).unlock_shared(); }
  void lock_all() override { door_.lock_all(); }
  void unlock_all() override { door_.unlock_all(); }

 private:
  // A handle is made when it is first used: most ranks lock few targets, and a handle of a
  // reader-writer lock has a table of its counters.
  [[nodiscard, gnu::always_inline]] handle& on(int target) {
    handle*& at = handles_[static_cast<std::size_t>(target)];
    if (at == nullptr) [[unlikely]]
      at = &made_for(target);
    return *at;
  }
  [[nodiscard, gnu::cold, gnu::noinline]] handle& made_for(int target) {
    made_.push_back(std::make_unique<handle>(me_, door_, places_.target(me_.machine(), target),
                                             target, places_.set()));
    return *made_.back();
  }

  participant& me_;
  places places_;
  door door_;
  zeroed_array<handle*> handles_;
  std::vector<std::unique_ptr<handle>> made_;
};

using lock::parameter_values;

struct row {
  scheme_name name;
  std::unique_ptr<scheme> (*make)(participant&, const parameter_values&);
  scheme_memory (*memory)(const rma::topology&, const parameter_values&);
};

template <template <class> class Target, template <class> class Way>
[[nodiscard]] row row_of() {
  using made = scheme_of<Target, Way>;
  using parameters = typename Target<mpi::port>::parameters;
  return {{std::string(Target<mpi::port>::about.name), Way<mpi::port>::name},
          [](participant& me, const parameter_values& set) -> std::unique_ptr<scheme> {
            return std::make_unique<made>(me, lock::with_values(parameters{}, set));
          },
          [](const rma::topology& machine, const parameter_values& set) -> scheme_memory {
            rma::layout in(UINT32_MAX);
            static_cast<void>(in.take<rma::plain_cell>(participant::most_nested * rma::line_words));
            const typename made::places at(in, machine, lock::with_values(parameters{}, set));
            return {in.used(), at.memory(machine, words_of_observers)};
          }};
}

[[nodiscard]] const std::vector<row>& rows() {
  static const std::vector<row> all = [] {
    std::vector<row> found;
    lock::all::for_each([&]<template <class> class Lock>(lock::family<Lock>) {
      // A program that computes would not serve requests.
      if constexpr (!Lock<mpi::port>::about.needs_messages) {
        found.push_back(row_of<Lock, lock::window_groups>());
        found.push_back(row_of<Lock, lock::window_global>());
        found.push_back(row_of<Lock, left_to_mpi>());
      }
    });
    return found;
  }();
  return all;
}

/// The different names of one sort, in the order of the rows.
[[nodiscard]] std::vector<std::string> names(std::string scheme_name::*sort) {
  std::vector<std::string> found;
  for (const row& r : rows())
    if (std::find(found.begin(), found.end(), r.name.*sort) == found.end())
      found.push_back(r.name.*sort);
  return found;
}

[[nodiscard]] bool is_among(const std::vector<std::string>& known, const std::string& name) {
  return std::find(known.begin(), known.end(), name) != known.end();
}

[[nodiscard]] const row& row_named(const scheme_name& name) {
  for (const row& r : rows())
    if (r.name.lock == name.lock && r.name.lock_all == name.lock_all) return r;
  throw std::invalid_argument("no lock '" + name.lock + "' with '" + name.lock_all +
                              "' (accepted: " + all_locks() + "; with " + all_ways() + ")");
}

}  // namespace

bool is_lock(const std::string& name) { return is_among(names(&scheme_name::lock), name); }
bool is_way(const std::string& name) { return is_among(names(&scheme_name::lock_all), name); }

std::string all_locks() { return joined(names(&scheme_name::lock)); }
std::string all_ways() { return joined(names(&scheme_name::lock_all)); }

std::string said_of_parameters(const scheme_name& name) {
  std::vector<std::string> all;
  for (const auto& [parameter, value] : name.parameters)
    all.push_back(parameter + "=" + std::to_string(value));
  return joined(all, " ");
}

scheme_memory memory_of(const scheme_name& name, const rma::topology& machine) {
  return row_named(name).memory(machine, name.parameters);
}

std::unique_ptr<scheme> make_scheme(const scheme_name& name, participant& me) {
  return row_named(name).make(me, name.parameters);
}

}  // namespace lockflight::mpi_preload
