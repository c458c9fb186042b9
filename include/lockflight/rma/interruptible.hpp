// A port whose waits end early when what its participant waits in is gone: another participant died
// that nobody has dealt with, or the memory was replaced. Locks are written as if waits always
// ended well; a lock that survives deaths runs them on this port (lock/robust.hpp).
//
// A wait that ends early throws `interrupted`. The lock's handle is of no use then, and what it has
// written lies in memory that is given up.
//
// Cost: what the other port costs; in a wait, one more load for each value that it reads.
#pragma once

#include <cstdint>

#include "lockflight/rma/port.hpp"

namespace lockflight::rma {

/// Ends a wait in a lock whose generation is over.
struct interrupted {};

/// What ends a participant's waits, and whether a participant that died concerns it.
class mourner {
 public:
  explicit mourner(const lifeline& line) : line_(line) {}
  /// Waits end at once when its cell has changed, and when others have died than so many, and this
  /// has lost one.
  [[nodiscard]] const lifeline& line() const { return line_; }
  /// Called by the waiting participant when deaths() has grown. It may load cells of the node.
  [[nodiscard]] virtual bool has_lost_one() = 0;

 protected:
  ~mourner() = default;
  lifeline line_;
};

template <mortal_port Port>
class interruptible {
 public:
  static constexpr capability_set capabilities = [] {
    capability_set of = Port::capabilities;
    // What is not forwarded.
    of.messages = of.losses = of.native_memory = false;
    return of;
  }();

  explicit interruptible(Port& inner) : inner_(inner) {}
  interruptible(const interruptible&) = delete;
  interruptible& operator=(const interruptible&) = delete;

  /// From now on waits end when the mourner says so. It may change its line between waits.
  void hold_on_to(mourner& one) { mourner_ = &one; }

  [[nodiscard]] rank_t rank() const { return inner_.rank(); }
  [[nodiscard]] const topology& machine() const { return inner_.machine(); }
  [[nodiscard]] bool orders_posts() const { return rma::orders_posts(inner_); }
  [[nodiscard]] bool shares_cores() const { return rma::shares_cores(inner_); }
  template <class Cell>
  [[nodiscard]] auto resolve(Cell c) const {
    return rma::resolve(inner_, c);
  }

  // ---- posted ----

  template <class Cell>
  void put(Cell to, word value) {
    inner_.put(to, value);
  }
  template <class Cell>
  void get(Cell from, word& result) {
    inner_.get(from, result);
  }
  void add(nic_cell to, word value) { inner_.add(to, value); }
  void fetch_add(nic_cell at, word value, word& before) { inner_.fetch_add(at, value, before); }
  void swap(nic_cell at, word value, word& before) { inner_.swap(at, value, before); }
  void compare_swap(nic_cell at, word expected, word desired, word& before) {
    inner_.compare_swap(at, expected, desired, before);
  }
  void flush(rank_t rank) { inner_.flush(rank); }
  void flush() { inner_.flush(); }

  // ---- immediate ----

  template <class Cell>
  [[nodiscard, gnu::always_inline]] word load(Cell from) {
    return inner_.load(from);
  }
  template <class Cell>
  [[gnu::always_inline]] void store(Cell to, word value) {
    inner_.store(to, value);
  }
  template <of_class<cell_class::cpu> Cell>
  [[nodiscard, gnu::always_inline]] word cpu_fetch_add(Cell at, word value) {
    return inner_.cpu_fetch_add(at, value);
  }
  template <of_class<cell_class::cpu> Cell>
  [[nodiscard, gnu::always_inline]] word cpu_swap(Cell at, word value) {
    return inner_.cpu_swap(at, value);
  }
  template <of_class<cell_class::cpu> Cell>
  [[nodiscard, gnu::always_inline]] word cpu_compare_swap(Cell at, word expected, word desired) {
    return inner_.cpu_compare_swap(at, expected, desired);
  }
  void fence() { inner_.fence(); }
  void fence_node()
    requires node_fencing_port<Port>
  {
    inner_.fence_node();
  }

  // ---- waiting ----

  template <class Cell, class Predicate>
  word await(Cell on, Predicate done) {
    while (true) {
      const word now = inner_.await_or_death(on, done, mourner_->line());
      if (done(now)) return now;
      go_on_or_throw();
    }
  }
  template <class Cell, class Predicate>
  word await_until(Cell on, Predicate done, deadline until) {
    while (true) {
      const word now = inner_.await_until_or_death(on, done, until, mourner_->line());
      if (done(now) || inner_.is_over(until)) return now;
      go_on_or_throw();
    }
  }
  template <class Cell, class Predicate>
  word poll(Cell from, Predicate done, backoff back_off) {
    return poll_by_get(*this, from, done, back_off);
  }
  /// Every loop that retries has a pause in it (C19), so such loops end as well.
  void pause(std::uint64_t nanoseconds) {
    inner_.pause(nanoseconds);
    go_on_or_throw();
  }
  [[nodiscard]] deadline deadline_in(std::uint64_t nanoseconds) {
    return inner_.deadline_in(nanoseconds);
  }
  [[nodiscard]] bool is_over(deadline until) { return inner_.is_over(until); }

 private:
  void go_on_or_throw() {
    const lifeline& line = mourner_->line();
    if (inner_.load(line.cell) != line.value) throw interrupted();
    if (inner_.deaths() != line.deaths && mourner_->has_lost_one()) throw interrupted();
  }

  Port& inner_;
  mourner* mourner_ = nullptr;
};

}  // namespace lockflight::rma
