// Sizes in whole units.
#pragma once

#include <cstddef>

namespace lockflight {

/// The least multiple of `unit` that is at least `n`.
[[nodiscard]] constexpr std::size_t round_up(std::size_t n, std::size_t unit) {
  return (n + unit - 1) / unit * unit;
}

}  // namespace lockflight
