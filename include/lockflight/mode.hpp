// The two arguments of every acquire: how the lock is to be held, and how long that may take.
#pragma once

#include <cstdint>

#include <chrono>
#include "lockflight/rma/cxx20.hpp"

namespace lockflight {

/// How a lock is held, or is wanted; no acquire takes `none`. A greater mode includes the smaller
/// ones. The numbers are
/// those of domain files and of messages between agents.
enum class mode : std::uint8_t { none = 0, shared = 1, exclusive = 2 };

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

/// How long an acquire may take. `limit::at_once()` is an attempt.
class limit {
 public:
  [[nodiscard]] static constexpr limit at_once() { return limit(0); }
  [[nodiscard]] static constexpr limit for_ever() { return limit(UINT64_MAX); }
  /// 0 is an attempt, and UINT64_MAX is for ever.
  [[nodiscard]] static constexpr limit of_ns(std::uint64_t nanoseconds) {
    return limit(nanoseconds);
  }
  template <class Rep, class Period>
  constexpr limit(const std::chrono::duration<Rep, Period>& d) : ns_(nanoseconds_of(d)) {}

  [[nodiscard]] constexpr std::uint64_t nanoseconds() const { return ns_; }
  [[nodiscard]] constexpr bool is_attempt() const { return ns_ == 0; }
  [[nodiscard]] constexpr bool is_for_ever() const { return ns_ == UINT64_MAX; }
  bool operator==(const limit&) const = default;

 private:
  explicit constexpr limit(std::uint64_t nanoseconds) : ns_(nanoseconds) {}
  std::uint64_t ns_;
};

}  // namespace lockflight
