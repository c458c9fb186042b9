// Random numbers for identities.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>

namespace lockflight {

/// 64 random bits, not all of them 0.
[[nodiscard]] inline std::uint64_t random_number() {
  std::uint64_t made = 0;
  while (made == 0)
    if (getentropy(&made, sizeof made) != 0)
      throw std::system_error(errno, std::generic_category(), "the kernel's random numbers");
  return made;
}

}  // namespace lockflight
