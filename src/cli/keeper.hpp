// The keeper of `lockflight hold`: a process in the background that keeps a lock until its time is
// over, somebody releases it, or an operator breaks the hold.
//
// The command that the caller has started is the *front*. Its child, the keeper, waits for the lock
// as a run does. When it holds, it tells the front the token, and waits for the answer that the
// token was printed: a hold whose token nobody knows is released. If the front ends before, so does
// the keeper.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "cli/guarded.hpp"

namespace lockflight::cli {

struct kept {
  std::uint64_t token = 0;  ///< by which the hold is released
  int unit = -1;            ///< of a semaphore; -1: none
  int pid = 0;              ///< of the keeper
};

/// Starts a keeper for that lock, and calls `print` when it holds. Returns the exit code: 0, or
/// that of a keeper that did not get the lock. Both processes return from this call. Throws
/// std::system_error, domain_error.
[[nodiscard]] int run_keeper(guarded_command what, std::chrono::nanoseconds time,
                             const std::string& note, const std::function<void(kept)>& print);

}  // namespace lockflight::cli
