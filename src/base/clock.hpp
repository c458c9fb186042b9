// The time, and the time of a processor.
#pragma once

#include <cstdint>
#include <ctime>

namespace lockflight {

/// The time of a clock that never goes back, and that goes on while a process is stopped.
[[nodiscard]] inline std::uint64_t now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(t.tv_nsec);
}

/// The processor time of the calling thread. Other threads and processes do not change it.
[[nodiscard]] inline std::uint64_t processor_time_of_thread_ns() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(t.tv_nsec);
}

}  // namespace lockflight
