// Time spans of C++ as Python has them: seconds, and math.inf for the longest one.
#pragma once

#include <chrono>
#include <limits>

namespace lockflight::python {

[[nodiscard]] inline double seconds_of(std::chrono::nanoseconds span) {
  if (span == std::chrono::nanoseconds::max()) return std::numeric_limits<double>::infinity();
  return std::chrono::duration<double>(span).count();
}

}  // namespace lockflight::python
