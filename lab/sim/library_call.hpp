// The calls of a library of locks that cost the caller something beside their operations.
#pragma once

#include <cstdint>

namespace lockflight::sim {

enum class library_call : std::uint8_t {
  acquire,
  release,
  access,  ///< a put or a get in a critical section
};

}  // namespace lockflight::sim
