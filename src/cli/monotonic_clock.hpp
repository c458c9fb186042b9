// The clock by which domains say since when somebody holds or waits.
#pragma once

#include <cstdint>
#include <ctime>

namespace lockflight::cli {

[[nodiscard]] inline std::uint64_t monotonic_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(t.tv_nsec);
}

}  // namespace lockflight::cli
