// The declared schedule of whoever must poll: how long to stay away between two looks.
#pragma once

#include <algorithm>
#include <cstdint>

namespace lockflight::rma {

/// Truncated exponential back-off: first, 2 × first, 4 × first, … at most `most`, in nanoseconds.
/// Arithmetic only; the waiting itself is `port.pause(back_off.next())`, an operation of the
/// fabric.
class backoff {
 public:
  constexpr backoff(std::uint64_t first_ns, std::uint64_t most_ns)
      : next_ns_(first_ns), most_ns_(most_ns) {}

  /// Longer by a quarter each time: what is waited for is noticed late by an eighth, on average, of
  /// the time that it took, and a long wait has few looks all the same.
  static constexpr backoff gentle(std::uint64_t first_ns, std::uint64_t most_ns) {
    backoff b(first_ns, most_ns);
    b.growth_ = 4;
    return b;
  }

  /// No waiting between two attempts beyond what a fabric needs to let others run.
  static constexpr backoff none() { return {0, 0}; }

  /// How long to wait now; what it will answer next is longer.
  constexpr std::uint64_t next() {
    const std::uint64_t now = next_ns_;
    next_ns_ = std::min(most_ns_, next_ns_ + next_ns_ / growth_);
    return now;
  }

 private:
  std::uint64_t next_ns_;
  std::uint64_t most_ns_;
  std::uint64_t growth_ = 1;  // by this part of itself
};

}  // namespace lockflight::rma
