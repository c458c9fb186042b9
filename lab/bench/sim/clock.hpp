// A rank's virtual time as the clock of its benchmark.
#pragma once

#include <cstdint>

#include "lab/bench/port/clock.hpp"
#include "lab/sim/port.hpp"

namespace lockflight::bench {

/// Ticks of a tenth of a nanosecond: finer than any cost, and histograms hold seven minutes of
/// them. Reading it takes no time, so its cost is 0.
class sim_clock {
 public:
  [[nodiscard]] static constexpr double look_up_seconds() { return 20e-6; }
  /// A time that is enough on the slowest machine; a rank that is refused tries again.
  [[nodiscard]] static constexpr std::uint64_t a_moment_ns(int ranks) {
    return 1'000'000 + std::uint64_t{100'000} * static_cast<std::uint64_t>(ranks);
  }
  static constexpr time_base base{.ticks_per_us = 1e4};

  explicit sim_clock(sim::port& of) : of_(&of) {}

  [[nodiscard]] std::uint64_t now() const { return of_->now() / ps_a_tick; }
  [[nodiscard]] std::uint64_t now_ordered() const { return now(); }
  std::uint64_t busy_until(std::uint64_t tick) const {
    of_->compute_until(tick * ps_a_tick);
    return now();
  }
  [[nodiscard]] std::uint64_t ticks(double seconds) const { return base.ticks(seconds); }
  /// From now on `others` other processes of the rank's node run all the time.
  void share_core(std::uint32_t others) const { of_->share_core(others); }

 private:
  static constexpr sim::time_ps ps_a_tick = 100;

  sim::port* of_;
};

}  // namespace lockflight::bench
