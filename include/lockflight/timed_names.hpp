// The names of the standard library, for locks that have others: Lockable, TimedLockable and their
// shared forms.
#pragma once

#include <cstdint>

#include <chrono>
#include "lockflight/mode.hpp"

namespace lockflight {

/// Makes a lock that has try_lock_within() a TimedLockable of the standard library. A duration is
/// measured on the clock of the port (C38). A time point of another clock is converted to a
/// duration at the call.
template <class Lock>
class timed_names {
 public:
  template <class Rep, class Period>
  [[nodiscard]] bool try_lock_for(const std::chrono::duration<Rep, Period>& patience) {
    return static_cast<Lock&>(*this).try_lock_within(nanoseconds_of(patience));
  }
  template <class Clock, class Duration>
  [[nodiscard]] bool try_lock_until(const std::chrono::time_point<Clock, Duration>& then) {
    return try_lock_for(then - Clock::now());
  }
};

/// The same for a lock that can be shared, which becomes a SharedTimedLockable.
template <class Lock>
class shared_timed_names : public timed_names<Lock> {
 public:
  template <class Rep, class Period>
  [[nodiscard]] bool try_lock_shared_for(const std::chrono::duration<Rep, Period>& patience) {
    return static_cast<Lock&>(*this).try_lock_shared_within(nanoseconds_of(patience));
  }
  template <class Clock, class Duration>
  [[nodiscard]] bool try_lock_shared_until(const std::chrono::time_point<Clock, Duration>& then) {
    return try_lock_shared_for(then - Clock::now());
  }
};

/// Makes a handle that has acquire(mode, limit) and release(mode) a Lockable of the standard
/// library, with and without time limits.
template <class Handle, template <class> class TimedNames = timed_names>
class lock_names : public TimedNames<Handle> {
 public:
  void lock() { static_cast<void>(self().acquire(mode::exclusive, limit::for_ever())); }
  [[nodiscard]] bool try_lock() { return self().acquire(mode::exclusive, limit::at_once()); }
  [[nodiscard]] bool try_lock_within(std::uint64_t nanoseconds) {
    return self().acquire(mode::exclusive, limit::of_ns(nanoseconds));
  }
  void unlock() { self().release(mode::exclusive); }

 private:
  [[nodiscard]] Handle& self() { return static_cast<Handle&>(*this); }
};

/// The same for one that can be shared.
template <class Handle>
class shared_lock_names : public lock_names<Handle, shared_timed_names> {
 public:
  void lock_shared() { static_cast<void>(self().acquire(mode::shared, limit::for_ever())); }
  [[nodiscard]] bool try_lock_shared() { return self().acquire(mode::shared, limit::at_once()); }
  [[nodiscard]] bool try_lock_shared_within(std::uint64_t nanoseconds) {
    return self().acquire(mode::shared, limit::of_ns(nanoseconds));
  }
  void unlock_shared() { self().release(mode::shared); }

 private:
  [[nodiscard]] Handle& self() { return static_cast<Handle&>(*this); }
};

}  // namespace lockflight
