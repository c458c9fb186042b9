// Jain's fairness index.
#pragma once

#include <optional>
#include <span>

namespace lockflight::bench {

/// (sum x)^2 / (n * sum x^2): 1 when all are equal, 1 / n when one has everything (Jain, Chiu and
/// Hawe 1984). Nothing when the sum is 0.
[[nodiscard]] inline std::optional<double> jain(std::span<const double> shares) {
  double sum = 0;
  double squares = 0;
  for (const double x : shares) {
    sum += x;
    squares += x * x;
  }
  if (squares == 0) return std::nullopt;
  return sum * sum / (static_cast<double>(shares.size()) * squares);
}

}  // namespace lockflight::bench
