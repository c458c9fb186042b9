#include "mpi_preload/scheme.hpp"

#include <optional>
#include <utility>
#include <vector>

#include "lockflight/lock/all.hpp"
#include "lockflight/lock/window_locks.hpp"

namespace lockflight::mpi_preload {
namespace {

using participant = rma::participant<mpi::port>;

template <template <class> class Target>
class scheme_of_target final : public scheme {
  using target_lock = Target<mpi::port>;
  using parameters = typename target_lock::parameters;
  using door = lock::window_door<mpi::port>;
  using handle = lock::window_lock<Target, mpi::port>;

 public:
  struct cells {
    typename door::cells window;
    std::vector<typename target_lock::cells> target;

    static cells place(rma::layout& in, const rma::topology& machine) {
      cells c{door::cells::place(in, machine, 0), {}};
      for (rma::rank_t t = 0; t < machine.ranks(); ++t)
        c.target.push_back(target_lock::cells::place(in, machine, parameters{}, t));
      return c;
    }
  };

  explicit scheme_of_target(participant& me)
      : me_(me),
        cells_(cells::place(me.cells(), me.machine())),
        door_(me, cells_.window),
        handles_(cells_.target.size()) {}

  void lock(int target) override { on(target).lock(); }
  void unlock(int target) override { on(target).unlock(); }
  void lock_shared(int target) override { on(target).lock_shared(); }
  void unlock_shared(int target) override { on(target).unlock_shared(); }
  void lock_all() override { door_.lock_all(); }
  void unlock_all() override { door_.unlock_all(); }

 private:
  // Made when it is first used: most ranks lock few targets, and a handle of a reader-writer lock
  // has a table of its counters.
  [[nodiscard]] handle& on(int target) {
    const auto t = static_cast<std::size_t>(target);
    if (!handles_[t])
      handles_[t] = std::make_unique<handle>(me_, door_, cells_.target[t], parameters{});
    return *handles_[t];
  }

  participant& me_;
  cells cells_;
  door door_;
  std::vector<std::unique_ptr<handle>> handles_;
};

struct row {
  std::string name;
  std::unique_ptr<scheme> (*make)(participant&);
  std::uint32_t (*words)(const rma::topology&);
};

template <template <class> class Target>
[[nodiscard]] row row_of() {
  using made = scheme_of_target<Target>;
  return {std::string(Target<mpi::port>::about.name),
          [](participant& me) -> std::unique_ptr<scheme> { return std::make_unique<made>(me); },
          [](const rma::topology& machine) {
            constexpr std::uint32_t as_large_as_it_gets = 1u << 30;
            rma::layout in(as_large_as_it_gets);
            static_cast<void>(in.take<rma::plain_cell>(participant::most_nested * rma::line_words));
            static_cast<void>(made::cells::place(in, machine));
            return in.used();
          }};
}

[[nodiscard]] const std::vector<row>& rows() {
  static const std::vector<row> all = [] {
    std::vector<row> found;
    lock::all::for_each([&]<template <class> class Lock>(lock::family<Lock>) {
      // A program that computes would not serve requests.
      if constexpr (!Lock<mpi::port>::about.needs_messages) found.push_back(row_of<Lock>());
    });
    return found;
  }();
  return all;
}

[[nodiscard]] const row& row_named(const std::string& name) {
  for (const row& r : rows())
    if (r.name == name) return r;
  throw std::invalid_argument("no lock '" + name + "' (accepted: " + all_schemes() + ")");
}

}  // namespace

bool is_scheme(const std::string& name) {
  for (const row& r : rows())
    if (r.name == name) return true;
  return false;
}

std::string all_schemes() {
  std::string names;
  for (const row& r : rows()) names += (names.empty() ? "" : ", ") + r.name;
  return names;
}

std::uint32_t words_of(const std::string& name, const rma::topology& machine) {
  return row_named(name).words(machine);
}

std::unique_ptr<scheme> make_scheme(const std::string& name, participant& me) {
  return row_named(name).make(me);
}

}  // namespace lockflight::mpi_preload
