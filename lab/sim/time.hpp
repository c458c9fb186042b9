// Virtual time.
#pragma once

#include <cmath>
#include <cstdint>

namespace lockflight::sim {

/// Picoseconds since the run began: finer than any cost, and enough for half a year.
using time_ps = std::uint64_t;

[[nodiscard]] inline time_ps from_ns(double ns) {
  return static_cast<time_ps>(std::llround(ns * 1e3));
}

}  // namespace lockflight::sim
