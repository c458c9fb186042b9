// The clock that operations are timed with: the processor's time-stamp counter where it can be
// trusted, else the steady clock.
#pragma once

#include <chrono>
#include <cstdint>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace lockflight::bench {

/// Counts ticks. Cheap to copy: keep a copy near the loop. All ranks of a machine see the same
/// ticks, since an invariant time-stamp counter runs alike on all its processors.
class tick_clock {
 public:
  /// Of this machine, calibrated against CLOCK_MONOTONIC at the first call (10 ms).
  [[nodiscard]] static const tick_clock& calibrated();

  /// A reading that may be taken a little before the instructions ahead of it have ended: for
  /// chains of readings, where what one operation loses the next gains.
  [[nodiscard]] std::uint64_t now() const {
#if defined(__x86_64__)
    if (tsc_) return __rdtsc();
#endif
    return steady();
  }

  /// A reading after everything before it and before everything behind it: for intervals that are
  /// short and stand alone. The processor would otherwise start, or end, a lock's instruction on
  /// the other side of the reading.
  [[nodiscard]] std::uint64_t now_ordered() const {
#if defined(__x86_64__)
    if (tsc_) {
      _mm_lfence();
      const std::uint64_t ticks = __rdtsc();
      _mm_lfence();
      return ticks;
    }
#endif
    return steady();
  }

  /// Keeps the processor busy until then, as a computation would. Returns the last reading.
  std::uint64_t busy_until(std::uint64_t tick) const {
    std::uint64_t at = now();
    while (at < tick) {
      relax();
      at = now();
    }
    return at;
  }

  [[nodiscard]] double ticks_per_us() const { return ticks_per_us_; }
  [[nodiscard]] std::uint64_t ticks(double seconds) const {
    return static_cast<std::uint64_t>(seconds * 1e6 * ticks_per_us_);
  }
  [[nodiscard]] double us(double ticks) const { return ticks / ticks_per_us_; }

  /// The least that two readings with nothing between them were apart, in ticks.
  [[nodiscard]] std::uint64_t cost() const { return cost_; }
  [[nodiscard]] std::uint64_t ordered_cost() const { return ordered_cost_; }

  [[nodiscard]] bool uses_tsc() const { return tsc_; }

 private:
  tick_clock();

  [[nodiscard]] static std::uint64_t steady() {
    const auto since = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
  }
  static void relax() {
#if defined(__x86_64__)
    _mm_pause();
#endif
  }

  bool tsc_ = false;
  double ticks_per_us_ = 1'000;
  std::uint64_t cost_ = 0;
  std::uint64_t ordered_cost_ = 0;
};

}  // namespace lockflight::bench
