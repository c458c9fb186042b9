// A port whose waits end early when what its participant waits in is gone: another participant died
// that nobody has dealt with, the memory was replaced, or the lock was granted to a participant
// that does not take it. Locks are written as if waits always ended well; a lock that survives
// deaths runs them on this port (lock/robust.hpp).
//
// A wait that ends early throws `interrupted`. The lock's handle is of no use then, and what it has
// written lies in memory that is given up.
//
// Cost: what the other port costs; in a wait, one more load for each value that it reads.
#pragma once

#include <cstdint>

#include "lockflight/rma/forwarding.hpp"
#include "lockflight/rma/port.hpp"

namespace lockflight::rma {

/// Ends a wait in a lock whose generation is over.
struct interrupted {};

/// What ends a participant's waits.
class wait_guard {
 public:
  explicit wait_guard(const lifeline& line) : line_(line) {}

  /// Waits end at once when its cell has changed, and when others have died than so many, and this
  /// has an unhandled death.
  [[nodiscard]] const lifeline& line() const { return line_; }
  /// Whether a participant has died that concerns the waiting one. Called by the waiting
  /// participant when deaths() has grown. It may load cells of the node.
  [[nodiscard]] virtual bool has_unhandled_death() = 0;
  /// Called when a wait has ended for no other reason, or its deadline is over, and after each
  /// pause: whether the wait ends for good.
  [[nodiscard]] virtual bool is_in_vain(bool after_pause) = 0;
  /// From now on the participant may wait, for something new.
  void begin() { is_waiting_ = false; }
  [[nodiscard]] bool is_waiting() const { return is_waiting_; }
  /// When a wait ends so that is_in_vain is called, at the latest.
  [[nodiscard]] deadline until() {
    if (!is_waiting_) begin_waiting();
    return grant_;
  }

 protected:
  ~wait_guard() = default;
  /// Sets `grant_` and `is_waiting_`.
  virtual void begin_waiting() = 0;

  lifeline line_;
  deadline grant_;
  bool is_waiting_ = false;
};

template <mortal_port Port>
class interruptible : public forwarding<Port> {
 public:
  static constexpr capability_set capabilities = [] {
    capability_set of = Port::capabilities;
    // Their waits do not end early.
    of.messages = of.losses = of.native_memory = false;
    return of;
  }();

  explicit interruptible(Port& inner) : forwarding<Port>(inner), inner_(inner) {}

  /// From now on waits end when the guard says so. It may change its line between waits.
  void guard_with(wait_guard& one) {
    guard_ = &one;
    one.begin();
  }

  template <class Cell>
  [[nodiscard]] auto resolve(Cell c) const {
    return rma::resolve(inner_, c);
  }

  // ---- waiting ----

  template <class Cell, class Predicate>
  word await(Cell on, Predicate done) {
    if (word now = 0; holds_already(on, done, now)) return now;
    wait_guard& guard = *guard_;
    while (true) {
      const word now = inner_.await_until_or_death(on, done, guard.until(), guard.line());
      if (done(now)) return now;
      go_on_or_throw(guard, false);
    }
  }
  template <class Cell, class Predicate>
  word await_until(Cell on, Predicate done, deadline until) {
    if (word now = 0; holds_already(on, done, now)) return now;
    wait_guard& guard = *guard_;
    while (true) {
      const word now = inner_.await_until_or_death(on, done, earlier(inner_, until, guard.until()),
                                                   guard.line());
      if (done(now) || inner_.is_over(until)) return now;
      go_on_or_throw(guard, false);
    }
  }
  template <class Cell, class Predicate>
  word poll(Cell from, Predicate done, backoff back_off) {
    return poll_by_get(*this, from, done, back_off);
  }
  /// Every loop that retries has a pause in it (C19), so such loops end as well.
  void pause(std::uint64_t nanoseconds) {
    inner_.pause(nanoseconds);
    go_on_or_throw(*guard_, true);
  }

 private:
  // Only a participant that has to wait reads the clock.
  template <class Cell, class Predicate>
  [[nodiscard]] bool holds_already(Cell on, const Predicate& done, word& now) {
    if constexpr (examines_nothing<Port>) return false;
    if (guard_->is_waiting()) return false;
    now = inner_.load(on);
    return done(now);
  }

  void go_on_or_throw(wait_guard& guard, bool after_pause) {
    const lifeline& line = guard.line();
    if (inner_.load(line.cell) != line.value) throw interrupted();
    if (inner_.deaths() != line.deaths && guard.has_unhandled_death()) throw interrupted();
    if (guard.is_in_vain(after_pause)) throw interrupted();
    guard_ = &guard;  // the caller's program may have used another lock, in a wait that it may end
  }

  Port& inner_;
  wait_guard* guard_ = nullptr;
};

}  // namespace lockflight::rma
