// The part of `lockflight run --inherit`: the lock is held until the last process has ended that
// has inherited it from COMMAND, as with flock(1), and the run itself ends with COMMAND.
//
// The run has two processes for this. The *front* is what the caller has started: it passes signals
// on, and ends as COMMAND has ended. Its child, the *supervisor*, does all that a run does
// otherwise: it holds the lock, and COMMAND is its child. COMMAND inherits the writing end of a
// pipe as a descriptor, 10 or above, and so do its children. The supervisor sees at the reading end
// when nobody has it any more. If COMMAND has ended and others still have it, the supervisor tells
// the front, which ends, and stays in the background.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "base/descriptor.hpp"
#include "cli/attended.hpp"

namespace lockflight::cli {

/// Of the supervisor.
class inheritance {
 public:
  /// `front` leads to the front process, and `front_pid` is its number.
  inheritance(descriptor front, int front_pid);

  /// True if the front process is still there.
  [[nodiscard]] bool has_front() const;
  /// For COMMAND, between vfork and exec. Async-signal-safe.
  void pass_on() const noexcept;
  /// COMMAND has been started, or could not be.
  void close_own_end() { writing_ = descriptor(); }
  /// True if a process has what was passed on.
  [[nodiscard]] bool has_inheritors() const;
  /// Tells the front process how COMMAND has ended, and lets go of all that this process shares
  /// with its caller: the terminal, the standard streams, other descriptors, the folder.
  void go_to_background(const ending& its);
  /// Until no process has what was passed on. Signals that are blocked do not end this. `shown` is
  /// called with an inheritor, and with another one whenever that has ended; with 0 if none can be
  /// seen, as those of another user.
  void await_inheritors(const std::function<void(pid_t inheritor)>& shown) const;

 private:
  [[nodiscard]] pid_t an_inheritor() const;
  /// False once nobody has what was passed on. True once the process has ended.
  [[nodiscard]] bool await_end_of(const descriptor& inheritor) const;

  descriptor front_;
  int front_pid_;
  std::vector<int> of_caller_;  // descriptors that were there before
  descriptor reading_, writing_;
};

/// Runs `supervise` in a child process, which ends by what that returns, and returns the exit code
/// of this one, or ends it by a signal when main() returns. Throws std::system_error.
[[nodiscard]] int run_inherited(const std::function<int(inheritance&)>& supervise);

}  // namespace lockflight::cli
