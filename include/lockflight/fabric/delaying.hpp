// A decorator that widens race windows: it makes a fast fabric as late and disorderly as the
// contract allows a network to be.
//
// Invariants: a posted operation takes effect at a random moment before its flush, in random order.
// Runs are deterministic for one participant and seed; the interleaving with other participants is
// the machine's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <variant>
#include <vector>

#include "lockflight/fabric/decorator.hpp"

namespace lockflight::fabric {

/// How much disorder. Probabilities in 1/256.
struct disorder {
  std::uint64_t seed = 1;
  int postpone = 128;  ///< a posted operation takes effect later, at its flush at the latest
  int linger = 24;     ///< a call is preceded by a pause
  std::uint64_t longest_ns = 3'000;  ///< the longest pause
};

/// Delays posted operations, and pauses before calls.
template <rma::port Inner>
class delaying : public decorator<Inner> {
  using base = decorator<Inner>;

 public:
  static constexpr rma::capability_set capabilities = [] {
    rma::capability_set of = base::capabilities;
    of.ordered_posts = false;
    return of;
  }();

  delaying(Inner& inner, disorder how)
      : base(inner),
        how_(how),
        random_(how.seed * 1'000'003 + static_cast<unsigned>(inner.rank())) {}

  [[nodiscard]] static constexpr bool orders_posts() { return capabilities.ordered_posts; }

  template <class Cell>
  void put(Cell to, rma::word value) {
    post(put_op<Cell>{to, value});
  }
  template <class Cell>
  void get(Cell from, rma::word& result) {
    post(get_op<Cell>{from, &result});
  }
  void add(rma::nic_cell to, rma::word value) { post(add_op{to, value}); }
  void fetch_add(rma::nic_cell at, rma::word value, rma::word& before) {
    post(fetch_add_op{at, value, &before});
  }
  void swap(rma::nic_cell at, rma::word value, rma::word& before) {
    post(swap_op{at, value, &before});
  }
  void compare_swap(rma::nic_cell at, rma::word expected, rma::word desired, rma::word& before) {
    post(compare_swap_op{at, expected, desired, &before});
  }

  void flush(rma::rank_t rank) {
    perhaps_linger();
    run_pending([rank](const operation& op) { return home_of(op) == rank; });
    base::flush(rank);
  }
  void flush() {
    perhaps_linger();
    run_pending([](const operation&) { return true; });
    base::flush();
  }

  template <class Cell>
  [[nodiscard]] rma::word load(Cell from) {
    between_calls();
    return base::load(from);
  }
  template <class Cell>
  void store(Cell to, rma::word value) {
    between_calls();
    base::store(to, value);
  }
  [[nodiscard]] rma::word cpu_fetch_add(rma::cpu_cell at, rma::word value) {
    between_calls();
    return base::cpu_fetch_add(at, value);
  }
  [[nodiscard]] rma::word cpu_swap(rma::cpu_cell at, rma::word value) {
    between_calls();
    return base::cpu_swap(at, value);
  }
  [[nodiscard]] rma::word cpu_compare_swap(rma::cpu_cell at, rma::word expected,
                                           rma::word desired) {
    between_calls();
    return base::cpu_compare_swap(at, expected, desired);
  }
  template <class Cell, class Predicate>
  rma::word await(Cell on, Predicate done) {
    perhaps_linger();
    return base::await(on, done);
  }
  template <class Cell, class Predicate>
  rma::word await_until(Cell on, Predicate done, rma::deadline until) {
    perhaps_linger();
    return base::await_until(on, done, until);
  }
  template <class Cell, class Predicate>
  rma::word poll(Cell from, Predicate done, rma::backoff back_off) {
    return rma::poll_by_get(*this, from, done, back_off);
  }

  void serve_with(rma::message_handler* handler)
    requires rma::messaging_port<Inner>
  {
    handler_ = handler;
    base::serve_with(handler);
  }

 private:
  template <class Cell>
  struct put_op {
    Cell at;
    rma::word value;
    void run(Inner& p) const { p.put(at, value); }
  };
  template <class Cell>
  struct get_op {
    Cell at;
    rma::word* result;
    void run(Inner& p) const { p.get(at, *result); }
  };
  struct add_op {
    rma::nic_cell at;
    rma::word value;
    void run(Inner& p) const { p.add(at, value); }
  };
  struct fetch_add_op {
    rma::nic_cell at;
    rma::word value;
    rma::word* before;
    void run(Inner& p) const { p.fetch_add(at, value, *before); }
  };
  struct swap_op {
    rma::nic_cell at;
    rma::word value;
    rma::word* before;
    void run(Inner& p) const { p.swap(at, value, *before); }
  };
  struct compare_swap_op {
    rma::nic_cell at;
    rma::word expected;
    rma::word desired;
    rma::word* before;
    void run(Inner& p) const { p.compare_swap(at, expected, desired, *before); }
  };
  using operation =
      std::variant<put_op<rma::cpu_cell>, put_op<rma::nic_cell>, put_op<rma::plain_cell>,
                   get_op<rma::cpu_cell>, get_op<rma::nic_cell>, get_op<rma::plain_cell>, add_op,
                   fetch_add_op, swap_op, compare_swap_op>;

  [[nodiscard]] static rma::rank_t home_of(const operation& op) {
    return std::visit([](const auto& o) { return o.at.home; }, op);
  }

  [[nodiscard]] bool chance(int of_256) { return static_cast<int>(random_() % 256) < of_256; }

  // The pause is not a wait of the participant. The participant may be serving a message, and must
  // not be handed the next one meanwhile.
  void perhaps_linger() {
    if (!chance(how_.linger) || how_.longest_ns == 0) return;
    const std::uint64_t ns = random_() % how_.longest_ns;
    if constexpr (rma::messaging_port<Inner>) {
      base::serve_with(nullptr);
      base::pause(ns);
      base::serve_with(handler_);
    } else {
      base::pause(ns);
    }
  }

  void post(operation op) {
    perhaps_linger();
    pending_.push_back(op);
    if (!chance(how_.postpone)) run_one(random_() % pending_.size());
  }

  void between_calls() {
    perhaps_linger();
    if (!pending_.empty() && !chance(how_.postpone)) run_one(random_() % pending_.size());
  }

  void run_one(std::size_t i) {
    const operation op = pending_[i];
    pending_[i] = pending_.back();
    pending_.pop_back();
    std::visit([this](const auto& o) { o.run(base::inner()); }, op);
  }

  template <class Which>
  void run_pending(Which which) {
    std::vector<std::size_t> due;
    while (true) {
      due.clear();
      for (std::size_t i = 0; i < pending_.size(); ++i)
        if (which(pending_[i])) due.push_back(i);
      if (due.empty()) return;
      run_one(due[random_() % due.size()]);
    }
  }

  disorder how_;
  std::minstd_rand random_;
  std::vector<operation> pending_;
  rma::message_handler* handler_ = nullptr;
};

}  // namespace lockflight::fabric
