// The smallest wait, and what longer ones are measured with.
#pragma once

#include <cstdint>
#include <ctime>

namespace lockflight::shm::detail {

/// Tells the processor that we look at memory in a loop.
inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#endif
}

/// Of a clock that never goes back.
[[nodiscard]] inline std::uint64_t now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(t.tv_nsec);
}

inline void sleep_for_ns(std::uint64_t nanoseconds) {
  const timespec t{static_cast<time_t>(nanoseconds / 1'000'000'000),
                   static_cast<long>(nanoseconds % 1'000'000'000)};
  nanosleep(&t, nullptr);
}

}  // namespace lockflight::shm::detail
