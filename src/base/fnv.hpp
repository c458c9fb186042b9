// FNV-1a, a hash of bytes: http://www.isthe.com/chongo/tech/comp/fnv/. It is the same on all
// machines and in all versions, so files and messages may depend on it.
#pragma once

#include <cstdint>
#include <string_view>

namespace lockflight {

[[nodiscard]] constexpr std::uint64_t fnv1a(std::string_view bytes) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char each : bytes) hash = (hash ^ static_cast<unsigned char>(each)) * 0x100000001b3u;
  return hash;
}

}  // namespace lockflight
