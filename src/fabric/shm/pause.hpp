// The smallest wait, and the clock of longer ones.
#pragma once

#include <algorithm>
#include <cstdint>
#include <ctime>

#include "base/clock.hpp"

namespace lockflight::shm::detail {

/// Tells the processor that we read memory in a loop.
inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#endif
}

inline void sleep_for_ns(std::uint64_t nanoseconds) {
  const timespec t{static_cast<time_t>(nanoseconds / 1'000'000'000),
                   static_cast<long>(nanoseconds % 1'000'000'000)};
  nanosleep(&t, nullptr);
}

/// The time that far from now, or the latest that the clock has. Returns 0 for 0 nanoseconds, so
/// that an attempt does not read the clock.
[[nodiscard]] inline std::uint64_t ns_from_now(std::uint64_t nanoseconds) {
  if (nanoseconds == 0) return 0;
  const std::uint64_t now = now_ns();
  return now + std::min(nanoseconds, UINT64_MAX - now);
}

/// The time that is left until `then`, at most `most_ns`, which is less than a second.
[[nodiscard]] inline timespec until_or(std::uint64_t then, std::uint64_t most_ns) {
  const std::uint64_t now = now_ns();
  return {0, static_cast<long>(then > now ? std::min(then - now, most_ns) : 0)};
}

}  // namespace lockflight::shm::detail
