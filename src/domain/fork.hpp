// What a process has once, and a fork of it anew.
#pragma once

#include <cstdint>
#include <mutex>

namespace lockflight::detail {

/// Guards lists of this process; a fork waits for it, so that it is free in the child.
[[nodiscard]] std::mutex& process_mutex();

/// Another number in each child: what was made before the fork is the parent's.
extern std::uint64_t fork_epoch;

/// An address that no other living thread of this process has.
[[nodiscard]] inline const void* this_thread() {
  static thread_local const char mark = 0;
  return &mark;
}

}  // namespace lockflight::detail
