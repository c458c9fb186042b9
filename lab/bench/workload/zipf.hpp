// Zipf's law: of n things, the k-th is chosen with a probability that is proportional to 1 / k^s.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace lockflight::bench {

/// The law for n things, 1 or more, and exponent s, 0 or more; with 0 all are as likely. 8 bytes
/// for each thing: all ranks of a run share one.
class zipf_law {
 public:
  zipf_law(std::uint32_t n, double s) : below_(n) {
    double sum = 0;
    for (std::uint32_t k = 0; k < n; ++k) below_[k] = sum += std::pow(k + 1.0, -s);
    for (double& b : below_) b /= sum;
  }

  /// The thing, counted from 0, at `at` of all, which is at least 0 and less than 1. O(log n).
  [[nodiscard]] std::uint32_t at(double at) const {
    // The last sum may be a little less than 1.
    const auto found = std::upper_bound(below_.begin(), below_.end() - 1, at);
    return static_cast<std::uint32_t>(found - below_.begin());
  }

 private:
  std::vector<double> below_;  // [k]: the probability of the things up to k
};

}  // namespace lockflight::bench
