// The names of the standard library for acquires with a time limit.
#pragma once

#include <chrono>
#include <cstdint>

namespace lockflight {

/// A duration in whole nanoseconds, rounded up. Returns 0 if the duration is negative, and
/// UINT64_MAX if it is too long.
template <class Rep, class Period>
[[nodiscard]] constexpr std::uint64_t nanoseconds_of(std::chrono::duration<Rep, Period> d) {
  using std::chrono::duration;
  if (d <= d.zero()) return 0;
  const duration<double, std::nano> about = d;
  constexpr double most = 9e18;  // a little less than std::chrono::nanoseconds can hold
  if (about.count() >= most) return UINT64_MAX;
  return static_cast<std::uint64_t>(std::chrono::ceil<std::chrono::nanoseconds>(d).count());
}

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

}  // namespace lockflight
