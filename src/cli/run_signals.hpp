// The signals of `lockflight run`, from its first moment to its last.
//
// - Before the run acquires, and after it has released: a signal that ends the process does so at
//   once, and SIGTSTP stops it.
// - While the run waits: a signal is noted, and the wait is given up because of it.
// - While the run has the lock: signals are blocked, and read one after the other.
//
// So no signal of this list ends the process while it has the lock, which would count as the death
// of a holder. A signal that was ignored when the process began stays ignored, as nohup(1) asks.
#pragma once

#include <signal.h>

#include <array>

namespace lockflight::cli {

/// Signals that end a run that waits, and that are passed on to the command of one that has the
/// lock.
constexpr std::array ending_signals{SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

/// A process has one object of this class.
class run_signals {
 public:
  /// Takes over the signals; they end the process at once.
  run_signals();
  ~run_signals() { let_end(); }
  run_signals(const run_signals&) = delete;
  run_signals& operator=(const run_signals&) = delete;

  /// Signals end or stop the process at once from here on. Pending signals are delivered now.
  void let_end();
  /// Notes signals from here on, and forgets those noted before.
  void note();
  /// Blocks signals from here on. A SIGTSTP that was noted is pending then.
  void block();

  /// The signal that was noted; a signal that ends the process has precedence over SIGTSTP. 0:
  /// none.
  [[nodiscard]] static int noted();
  /// A signal that has come since block() and ends the process. 0: none.
  [[nodiscard]] int pending() const;
  /// The signals that block() blocks.
  [[nodiscard]] const sigset_t& blocked() const { return blocked_; }
  /// The mask that the process began with.
  [[nodiscard]] const sigset_t& before() const { return before_; }

  /// Stops the process as SIGTSTP does by default, and returns when it is continued: at once if
  /// there is no shell that could continue it, or if a SIGCONT has come already. With `if_noted`
  /// only if a SIGTSTP was noted that no SIGCONT has taken back. The signals do then what they did
  /// before.
  void stop_here(bool if_noted = false);

  /// For the child between vfork and exec: signals have their default action, and are not blocked.
  void give_back_in_child() const;

 private:
  sigset_t blocked_{};
  sigset_t before_{};
  sigset_t ignored_{};  ///< those of ending_signals that were ignored
  bool stops_;          ///< SIGTSTP was not ignored
};

/// Ends the process by that signal when main() returns, after all else that happens then. Returns
/// the exit code for a process that this signal does not end: process 1 of a container.
[[nodiscard]] int end_by(int signal_number);

}  // namespace lockflight::cli
