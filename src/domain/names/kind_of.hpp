// A row of the kinds, from the lock's type. Included where rows are made, since each lock is a lot
// to compile.
#pragma once

#include "catalogue/parameters.hpp"
#include "domain/names/kinds.hpp"

namespace lockflight::detail {

/// What a lock's parameters are in a domain unless something else is asked for. Holders may hold
/// for long, so bounds are in time and small, and all words of a lock are rank 0's and few.
template <class Parameters>
[[nodiscard]] Parameters domain_defaults() {
  constexpr int counters = 8;  // of readers
  Parameters made{};
  const auto of_writers = [](auto& p) {
    p.patience = 1'000'000;
    p.one_line = 1;
  };
  if constexpr (requires { made.patience; }) of_writers(made);
  if constexpr (requires { made.rows_at_home; }) {
    of_writers(made.writers);
    made.ranks_per_cell = ranks / counters;
    made.rows_at_home = 1;
    made.t_w = 8;
    made.overtaking = 0;
  }
  if constexpr (requires { made.t_dc; }) made.t_dc = ranks;
  return made;
}

template <template <class> class Inside>
class robust_lock final : public any_robust {
  using type = lock::robust<Inside, domain_port>;
  using inside = Inside<rma::interruptible<domain_port>>;

 public:
  using parameters = typename type::parameters;
  using cells = typename type::cells;
  static constexpr bool tries = lock::can_try<inside>;
  static constexpr bool tries_shared = lock::can_try_shared<inside>;
  static constexpr bool times = lock::can_time<inside>;
  static constexpr bool times_shared = lock::can_time_shared<inside>;
  static constexpr bool shares = lock::shared<inside>;

  robust_lock(domain_participant& me, const cells& where, const parameters& set)
      : lock_(me, where, set), port_(me.port()) {}
  bool lock() override { return noted(lock_.lock_unless_interrupted()); }
  bool try_lock() override {
    if constexpr (tries) return noted(lock_.try_lock());
    return false;
  }
  bool try_lock_within([[maybe_unused]] std::uint64_t nanoseconds) override {
    if constexpr (times) return noted(lock_.try_lock_within(nanoseconds));
    return false;
  }
  void unlock() override { lock_.unlock(); }
  bool lock_shared() override {
    if constexpr (shares) return noted(lock_.lock_shared_unless_interrupted());
    return false;
  }
  bool try_lock_shared() override {
    if constexpr (tries_shared) return noted(lock_.try_lock_shared());
    return false;
  }
  bool try_lock_shared_within([[maybe_unused]] std::uint64_t nanoseconds) override {
    if constexpr (times_shared) return noted(lock_.try_lock_shared_within(nanoseconds));
    return false;
  }
  void unlock_shared() override {
    if constexpr (shares) lock_.unlock_shared();
  }
  std::uint64_t token() const override { return lock_.token(); }
  bool owner_died() override { return lock_.owner_died(); }
  void mark_consistent() override { lock_.mark_consistent(); }
  void abandon() override { lock_.abandon(); }
  void abandon_from_elsewhere(rma::rank_t holder, int record) override {
    static_cast<void>(lock_.abandon_for(holder, record));
  }
  void repair_if_needed() override {
    // A repair takes microseconds. If the repairer is stopped, the next sweep does this.
    constexpr std::uint64_t patience = 100'000'000;
    static_cast<void>(lock_.repair_if_needed(port_.deadline_in(patience)));
  }
  int place() const override { return lock_.place(); }

 private:
  bool noted(bool had) {
    port_.rest();
    if (had) held_since_ns = port_.note_hold(lock_.place());
    return had;
  }

  type lock_;
  domain_port& port_;
};

template <template <class> class Inside>
[[nodiscard]] domain_kind kind_of() {
  using made = robust_lock<Inside>;
  using parameters = typename made::parameters;
  static constexpr auto name = Inside<rma::interruptible<domain_port>>::about.name;
  domain_kind row{};
  row.name = name;
  row.shares = made::shares;
  row.tries = made::tries;
  row.tries_shared = made::tries_shared;
  row.times = made::times;
  row.times_shared = made::times_shared;
  row.canonical = [](const lock::parameter_values& set) {
    parameters now{};
    try {
      now = catalogue::checked(domain_defaults<parameters>(), set);
    } catch (const catalogue::bad_parameter& e) {
      throw domain_error(
          domain_error::reason::invalid,
          in_a_line("parameter '" + e.given + "' of ") + std::string(name) + " " + e.why);
    }
    if constexpr (requires { now.t_dc; })
      if (now.t_dc < ranks)
        throw domain_error(domain_error::reason::invalid,
                           "parameter 'T_DC=" + std::to_string(now.t_dc) + "' of " +
                               std::string(name) +
                               " in a domain (accepted: " + std::to_string(ranks) + ")");
    std::string text;
    for (const auto& p : parameters::all()) {
      if (!text.empty()) text += ',';
      text.append(p.name).append("=").append(std::to_string(p.of(now)));
    }
    return text;
  };
  row.words = [](const lock::parameter_values& set) {
    rma::layout all(rma::line_words, UINT32_MAX);
    const auto with = lock::with_values(domain_defaults<parameters>(), set);
    const auto where = made::cells::place(all, domain_port::machine(), with);
    return (all.used() - where.line.index + rma::line_words - 1) / rma::line_words *
           rma::line_words;
  };
  row.make = [](domain_participant& me, std::uint32_t first, std::uint32_t words,
                const lock::parameter_values& set) -> std::unique_ptr<any_robust> {
    rma::layout there(first, first + words);
    const auto with = lock::with_values(domain_defaults<parameters>(), set);
    return std::make_unique<made>(me, made::cells::place(there, me.machine(), with), with);
  };
  return row;
}

}  // namespace lockflight::detail
