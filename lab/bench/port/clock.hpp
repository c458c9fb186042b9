// The clock that operations are timed with: the processor's time-stamp counter where it can be
// trusted, else the steady clock.
#pragma once

#include <chrono>
#include <cstdint>

namespace lockflight::bench {

/// The length of a clock's ticks, and the cost of its readings.
struct time_base {
  double ticks_per_us = 1'000;
  std::uint64_t cost = 0;          ///< the least difference of two readings in a row
  std::uint64_t ordered_cost = 0;  ///< the same for ordered readings

  [[nodiscard]] constexpr std::uint64_t ticks(double seconds) const {
    return static_cast<std::uint64_t>(seconds * 1e6 * ticks_per_us);
  }
  [[nodiscard]] constexpr double us(double ticks) const { return ticks / ticks_per_us; }
};

/// True if clocks whose ticks have these lengths, the least and the most, give durations that can
/// be compared without converting each. Calibrations of one counter differ by far less.
[[nodiscard]] constexpr bool alike(double least_ticks_per_us, double most_ticks_per_us) {
  return most_ticks_per_us <= least_ticks_per_us * 1.001;
}

/// Counts ticks. Cheap to copy: keep a copy near the loop. All ranks of a machine see the same
/// ticks, since an invariant time-stamp counter runs alike on all its processors.
class tick_clock {
 public:
  /// How often a rank in a loop of operations checks its phase.
  [[nodiscard]] static constexpr double look_up_seconds() { return 0.05; }

  /// A time that is long enough for this many ranks to join a queue that they are about to join.
  [[nodiscard]] static constexpr std::uint64_t a_moment_ns(int /*ranks*/) { return 50'000; }

  /// This machine's clock, calibrated against CLOCK_MONOTONIC at the first call (10 ms).
  [[nodiscard]] static const tick_clock& calibrated();

  /// CLOCK_MONOTONIC in nanoseconds: its ticks are as long on every host.
  [[nodiscard]] static const tick_clock& in_nanoseconds();

  /// A reading that may be taken a little before the instructions ahead of it have ended: for
  /// chains of readings, where one operation's loss is the next one's gain.
  [[nodiscard]] std::uint64_t now() const {
#if defined(__x86_64__)
    if (tsc_) return __builtin_ia32_rdtsc();  // the header of intrinsics is long
#endif
    return steady();
  }

  /// A reading after everything before it and before everything behind it: for single short
  /// intervals. Otherwise the processor could start or end a lock's instruction on the other side
  /// of the reading.
  [[nodiscard]] std::uint64_t now_ordered() const {
#if defined(__x86_64__)
    if (tsc_) {
      __builtin_ia32_lfence();
      const std::uint64_t ticks = __builtin_ia32_rdtsc();
      __builtin_ia32_lfence();
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

  [[nodiscard]] const time_base& base() const { return base_; }
  [[nodiscard]] std::uint64_t ticks(double seconds) const { return base_.ticks(seconds); }

  [[nodiscard]] bool uses_tsc() const { return tsc_; }

 private:
  explicit tick_clock(bool tsc);

  [[nodiscard]] static std::uint64_t steady() {
    const auto since = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
  }
  static void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }

  bool tsc_ = false;
  time_base base_;
};

}  // namespace lockflight::bench
