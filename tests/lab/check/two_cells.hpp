// Two cells of a rank, on cache lines of their own.
#pragma once

#include <cstdint>

namespace lockflight::check {

inline constexpr std::uint32_t x = 8;
inline constexpr std::uint32_t y = 16;

}  // namespace lockflight::check
