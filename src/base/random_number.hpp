// Random numbers for identities.
#pragma once

#include <cstdint>
#include <random>

namespace lockflight {

/// 64 random bits, not all of them 0.
[[nodiscard]] inline std::uint64_t random_number() {
  std::random_device from;
  for (;;)
    if (const auto made = std::uint64_t{from()} << 32 | from(); made != 0) return made;
}

}  // namespace lockflight
