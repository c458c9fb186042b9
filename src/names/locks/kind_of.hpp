// A row of the kinds, from the lock's type. Included where rows are made, since each lock is a lot
// to compile.
#pragma once

#include "catalogue/parameters.hpp"
#include "lockflight/lock/flight/parameters.hpp"
#include "names/locks/kinds.hpp"

namespace lockflight::detail {

/// The parameters of a lock in a domain unless others are asked for. Holders may hold
/// for long, so bounds are in time and small, and all words of a lock are rank 0's and few.
template <class Parameters>
[[nodiscard]] Parameters domain_defaults() {
  constexpr int counters = 8;  // of readers
  Parameters made{};
  const auto of_writers = [](auto& p) {
    p.barge = lock::flight_parameters::most_counted;
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
class robust_lock final
    : public catalogue::lock_behind<any_robust, lock::robust<Inside, domain_port>> {
  using type = lock::robust<Inside, domain_port>;
  using base = catalogue::lock_behind<any_robust, type>;
  using base::lock_;

 public:
  robust_lock(domain_participant& me, const typename type::cells& where,
              const typename type::parameters& set)
      : base(me, where, set), port_(me.port()) {}
  bool acquire(mode as, limit patience) override {
    const bool had = base::acquire(as, patience);
    port_.rest();
    if (had) {
      this->held_record = lock_.place();
      this->held_since_ns = port_.note_hold(this->held_record);
    }
    return had;
  }
  void release(mode as) override {
    base::release(as);
    port_.tell_of_release(this->held_record);
  }
  std::uint64_t token() const override { return lock_.token(); }
  bool owner_died() override { return lock_.owner_died(); }
  void mark_consistent() override { lock_.mark_consistent(); }
  void abandon() override { lock_.abandon(); }
  void abandon_from_elsewhere(rma::rank_t holder, int record) override {
    lock_.abandon_for(holder, record);
  }
  void repair_if_needed() override {
    // A repair takes microseconds. If the repairer is stopped, the next sweep does this.
    constexpr std::uint64_t patience = 100'000'000;
    static_cast<void>(lock_.repair_if_needed(port_.deadline_in(patience)));
  }

 private:
  domain_port& port_;
};

template <template <class> class Inside>
[[nodiscard]] domain_kind kind_of() {
  using type = lock::robust<Inside, domain_port>;
  using parameters = typename type::parameters;
  static constexpr auto name = type::about.name;
  domain_kind row{};
  row.about = type::about;
  row.can = catalogue::abilities_of<type>;
  row.canonical = [](const lock::parameter_values& set) {
    parameters now{};
    try {
      now = catalogue::checked(domain_defaults<parameters>(), set);
    } catch (const catalogue::bad_parameter& e) {
      throw domain_error(domain_error::reason::invalid, visible("parameter '" + e.given + "' of ") +
                                                            std::string(name) + " " + e.why);
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
    const auto where = type::cells::place(all, domain_port::machine(), with);
    return (all.used() - where.line.index + rma::line_words - 1) / rma::line_words *
           rma::line_words;
  };
  row.make = [](domain_participant& me, std::uint32_t first, std::uint32_t words,
                const lock::parameter_values& set) -> std::unique_ptr<any_robust> {
    rma::layout there(first, first + words);
    const auto with = lock::with_values(domain_defaults<parameters>(), set);
    return std::make_unique<robust_lock<Inside>>(me, type::cells::place(there, me.machine(), with),
                                                 with);
  };
  return row;
}

}  // namespace lockflight::detail
