#include "mpi_preload/scheme.hpp"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "lockflight/lock/all.hpp"
#include "lockflight/lock/window/window_global.hpp"
#include "lockflight/lock/window/window_locks.hpp"

namespace lockflight::mpi_preload {
namespace {

using participant = rma::participant<mpi::port>;

template <template <class> class Target, template <class> class Way>
class scheme_of final : public scheme {
  using target_lock = Target<mpi::port>;
  using parameters = typename target_lock::parameters;
  using door = lock::whole_window<Way<mpi::port>>;
  using handle = lock::window_lock<Target, door, mpi::port>;

 public:
  struct cells {
    typename door::cells window;
    std::vector<typename target_lock::cells> target;

    static cells place(rma::layout& in, const rma::topology& machine, const parameters& set) {
      cells c{door::cells::place(in, machine, 0), {}};
      for (rma::rank_t t = 0; t < machine.ranks(); ++t)
        c.target.push_back(target_lock::cells::place(in, machine, of_each(machine, set), t));
      return c;
    }
  };

  scheme_of(participant& me, const parameters& set)
      : me_(me),
        set_(of_each(me.machine(), set)),
        cells_(cells::place(me.cells(), me.machine(), set)),
        door_(me, cells_.window),
        handles_(cells_.target.size()) {}

  void lock(int target) override { on(target).lock(); }
  void unlock(int target) override { on(target).unlock(); }
  void lock_shared(int target) override { on(target).lock_shared(); }
  void unlock_shared(int target) override { on(target).unlock_shared(); }
  void lock_all() override { door_.lock_all(); }
  void unlock_all() override { door_.unlock_all(); }

 private:
  // A window has a lock for each rank.
  [[nodiscard]] static parameters of_each(const rma::topology& machine, const parameters& set) {
    return lock::one_of(set, {machine.ranks(), machine.ranks()});
  }
  // Made when it is first used: most ranks lock few targets, and a handle of a reader-writer lock
  // has a table of its counters.
  [[nodiscard]] handle& on(int target) {
    const auto t = static_cast<std::size_t>(target);
    if (!handles_[t]) handles_[t] = std::make_unique<handle>(me_, door_, cells_.target[t], set_);
    return *handles_[t];
  }

  participant& me_;
  parameters set_;
  cells cells_;
  door door_;
  std::vector<std::unique_ptr<handle>> handles_;
};

using lock::parameter_values;

struct row {
  scheme_name name;
  std::unique_ptr<scheme> (*make)(participant&, const parameter_values&);
  std::uint32_t (*words)(const rma::topology&, const parameter_values&);
};

template <template <class> class Target, template <class> class Way>
[[nodiscard]] row row_of() {
  using made = scheme_of<Target, Way>;
  using parameters = typename Target<mpi::port>::parameters;
  return {
      {std::string(Target<mpi::port>::about.name), Way<mpi::port>::name},
      [](participant& me, const parameter_values& set) -> std::unique_ptr<scheme> {
        return std::make_unique<made>(me, lock::with_values(parameters{}, set));
      },
      [](const rma::topology& machine, const parameter_values& set) {
        constexpr std::uint32_t as_large_as_it_gets = 1u << 30;
        rma::layout in(as_large_as_it_gets);
        static_cast<void>(in.take<rma::plain_cell>(participant::most_nested * rma::line_words));
        static_cast<void>(made::cells::place(in, machine, lock::with_values(parameters{}, set)));
        return in.used();
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

[[nodiscard]] std::string joined(const std::vector<std::string>& all) {
  std::string text;
  for (const std::string& one : all) text += (text.empty() ? "" : ", ") + one;
  return text;
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
  std::string text;
  for (const auto& [parameter, value] : name.parameters)
    text += (text.empty() ? "" : " ") + parameter + "=" + std::to_string(value);
  return text;
}

std::uint32_t words_of(const scheme_name& name, const rma::topology& machine) {
  return row_named(name).words(machine, name.parameters);
}

std::unique_ptr<scheme> make_scheme(const scheme_name& name, participant& me) {
  return row_named(name).make(me, name.parameters);
}

}  // namespace lockflight::mpi_preload
