// A row of the kinds, from the lock's type. Included where rows are made, since each lock is a lot
// to compile.
#pragma once

#include "catalogue/parameters.hpp"
#include "domain/kinds.hpp"

namespace lockflight::detail {

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
  void lock() override {
    lock_.lock();
    noted(true);
  }
  bool try_lock() override {
    if constexpr (tries) return noted(lock_.try_lock());
    return false;
  }
  bool try_lock_within([[maybe_unused]] std::uint64_t nanoseconds) override {
    if constexpr (times) return noted(lock_.try_lock_within(nanoseconds));
    return false;
  }
  void unlock() override { lock_.unlock(); }
  void lock_shared() override {
    if constexpr (shares) {
      lock_.lock_shared();
      noted(true);
    }
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
  void repair_if_needed() override { lock_.repair_if_needed(); }

 private:
  bool noted(bool had) {
    if (had) port_.note_hold(lock_.place());
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
      now = catalogue::checked(parameters{}, set);
    } catch (const catalogue::bad_parameter& e) {
      throw domain_error(
          domain_error::reason::invalid,
          in_a_line("parameter '" + e.given + "' of ") + std::string(name) + " " + e.why);
    }
    parameters defaults{};
    std::string text;
    for (const auto& p : parameters::all())
      if (p.of(now) != p.of(defaults)) {
        if (!text.empty()) text += ',';
        text.append(p.name).append("=").append(std::to_string(p.of(now)));
      }
    return text;
  };
  row.words = [](const rma::topology& machine, const lock::parameter_values& set) {
    rma::layout all(rma::line_words, UINT32_MAX);
    const auto end = made::cells::place(all, machine, lock::with_values(parameters{}, set)).end;
    return (end - 1) / rma::line_words * rma::line_words;  // from the first line on, whole lines
  };
  row.make = [](domain_participant& me, std::uint32_t line, std::uint32_t words,
                const lock::parameter_values& set) -> std::unique_ptr<any_robust> {
    rma::layout there(line, line + words);
    const auto with = lock::with_values(parameters{}, set);
    return std::make_unique<made>(me, made::cells::place(there, me.machine(), with), with);
  };
  return row;
}

}  // namespace lockflight::detail
