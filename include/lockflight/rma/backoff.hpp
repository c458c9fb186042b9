// Truncated exponential back-off: how long a participant that polls pauses between two reads.
// Arithmetic only; the pause itself is an operation of the fabric, `port.pause(b.next())`.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lockflight/rma/cxx20.hpp"

namespace lockflight::rma {

/// Pauses of first, 2 × first, 4 × first, …, at most `most`, in nanoseconds.
class backoff {
 public:
  constexpr backoff(std::uint64_t first_ns, std::uint64_t most_ns)
      : next_ns_(first_ns), most_ns_(most_ns) {}

  /// Each pause is longer by a quarter. A poller then notices a change late by an eighth of the
  /// waiting time on average, and a long wait still takes few reads.
  static constexpr backoff gentle(std::uint64_t first_ns, std::uint64_t most_ns) {
    backoff b(first_ns, most_ns);
    b.growth_ = 4;
    return b;
  }

  /// No pause between two attempts beyond what a fabric needs to let other participants run.
  static constexpr backoff none() { return {0, 0}; }

  /// The pause to make now; the next one is longer.
  constexpr std::uint64_t next() {
    const std::uint64_t now = next_ns_;
    next_ns_ = std::min(most_ns_, next_ns_ + next_ns_ / growth_);
    return now;
  }

 private:
  std::uint64_t next_ns_;
  std::uint64_t most_ns_;
  std::uint64_t growth_ = 1;  // each pause grows by 1 / growth_ of itself
};

}  // namespace lockflight::rma
