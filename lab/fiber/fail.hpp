#ifndef LOCKFLIGHT_FIBER_FAIL_HPP
#define LOCKFLIGHT_FIBER_FAIL_HPP

#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <string_view>

namespace lockflight::fiber::detail {

/// Ends the process with one line on stderr: the caller broke a rule that this library cannot
/// recover from. It writes with system calls only, because it may run on a fiber's small stack.
[[noreturn]] inline void fail(std::string_view what) noexcept {
  const auto say = [](std::string_view text) {
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
  };
  say("lockflight fiber: ");
  say(what);
  say("\n");
  std::abort();
}

}  // namespace lockflight::fiber::detail

#endif  // LOCKFLIGHT_FIBER_FAIL_HPP
