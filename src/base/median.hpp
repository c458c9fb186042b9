// The value in the middle.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace lockflight {

/// The middle one of the values, or the mean of the two that are in the middle. 0 of no values.
[[nodiscard]] inline double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace lockflight
