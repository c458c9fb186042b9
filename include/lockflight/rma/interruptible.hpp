// A port whose waits end early if they may never succeed: another participant died and no one has
// handled that, the lock's memory was replaced, or the lock was granted to a participant that does
// not take it. Locks are written as if every wait succeeded; lock/robust.hpp runs them on this
// port.
//
// A wait that ends early throws `interrupted`. The lock's handle cannot be used any more, and the
// memory that it has written to is not used again.
//
// Cost: what the other port costs; each value that a wait reads costs one more load.
#pragma once

#include <cstdint>

#include "lockflight/rma/forwarding.hpp"
#include "lockflight/rma/port.hpp"

namespace lockflight::rma {

/// Ends a wait in a lock whose generation is over.
struct interrupted {};

/// The conditions that end a participant's waits.
class wait_guard {
 public:
  explicit wait_guard(const lifeline& line) : line_(line) {}

  /// A wait ends at once when the line's cell has changed. It also ends when deaths() has changed
  /// and has_unhandled_death() is true.
  [[nodiscard]] const lifeline& line() const { return line_; }
  /// True if a participant has died that concerns the waiting one. Called by the waiting
  /// participant when deaths() has grown. It may load cells of the node.
  [[nodiscard]] virtual bool has_unhandled_death() = 0;
  /// True if the wait is given up. Called when a wait has ended without its condition, or its
  /// deadline is over, and after each pause.
  [[nodiscard]] virtual bool is_in_vain(bool after_pause) = 0;
  /// Called before the participant waits for something new.
  void begin() { is_waiting_ = false; }
  [[nodiscard]] bool is_waiting() const { return is_waiting_; }
  /// The latest moment at which a wait ends so that is_in_vain is called.
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
    // The waits of these protocols do not end early.
    of.messages = of.losses = of.native_memory = false;
    return of;
  }();

  explicit interruptible(Port& inner) : forwarding<Port>(inner), inner_(inner) {}

  /// From now on this guard ends waits. It may change its line between waits.
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
