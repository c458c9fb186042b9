// Waits for other participants without a lock: for a slot, or for the directory.
#pragma once

#include <cstdint>
#include <functional>

namespace lockflight::detail {

/// call_before_waits: where a shared library, too, reads it without a call.
using call_before_wait = void (*)();
[[gnu::tls_model("initial-exec")]] inline constinit thread_local call_before_wait before_waits =
    nullptr;

inline void say_that_we_wait() {
  if (before_waits != nullptr) before_waits();
}

/// The limit of such a wait, and the function that ends it early.
struct time_limit {
  std::uint64_t until_ns = UINT64_MAX;  ///< on CLOCK_MONOTONIC; 0: an attempt
  const std::function<bool()>* is_interrupted = nullptr;

  /// Sleeps a while before the next try. False if time is over. Throws domain_error (interrupted).
  [[nodiscard]] bool sleep(std::uint64_t nanoseconds) const;
  /// Throws domain_error (interrupted) if the wait is to end.
  void check_interrupt() const;
};

}  // namespace lockflight::detail
