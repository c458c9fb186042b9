// Random numbers that cost about a nanosecond, seeded per rank.
#pragma once

#include <cstdint>

namespace lockflight::bench {

/// Scatters a number over all 64-bit numbers (the finalizer of splitmix64).
[[nodiscard]] constexpr std::uint64_t scatter(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// xorshift64* (Vigna 2016): good enough for roles, keys and waiting times.
class random {
 public:
  /// Each rank has its own sequence, the same in every run with the seed.
  random(std::uint64_t seed, std::uint64_t rank)
      : state_(scatter(scatter(seed) ^ scatter(~rank)) | 1) {}

  [[nodiscard]] std::uint64_t next() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545f4914f6cdd1d;
  }
  /// Uniform in 0 … bound - 1; `bound` is at most 2^32.
  [[nodiscard]] std::uint64_t below(std::uint64_t bound) { return (next() >> 32) * bound >> 32; }

 private:
  std::uint64_t state_;
};

}  // namespace lockflight::bench
