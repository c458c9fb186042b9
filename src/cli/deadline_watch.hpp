// Ends the command of `lockflight run`, and all that it has started, when the hold ends: before its
// host may no longer count as a member of the cluster, at its time limit, or when an operator
// breaks it. First comes SIGTERM, and later SIGKILL. While the agent renews the membership, the
// deadline moves on, and nothing happens.
//
// Progress: the watch belongs to the run, so it does nothing while somebody has stopped the run by
// SIGSTOP. A Ctrl-Z stops the run, too, but a process that is not stopped wakes it in time.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <ctime>
#include <functional>
#include <optional>

#include "cli/descendants.hpp"

namespace lockflight::cli {

class deadline_watch {
 public:
  using nanoseconds = std::chrono::nanoseconds;

  static constexpr nanoseconds never = nanoseconds::max();
  /// How far ahead the signals are; `never` if they are not due. If SIGKILL is due with SIGTERM or
  /// before it, there is no SIGTERM.
  struct times {
    nanoseconds term = never;
    nanoseconds kill = never;
  };
  /// The clock of the times, which goes on while the machine sleeps, is asked by `due`. `looks` is
  /// called each time before that, by act_on() alone, and returns when it is to be called again.
  /// With `from_now_on` this process is the subreaper of all that the command starts; else the
  /// processes whose parents have ended before the first signal are not found, and
  /// without a timer (RLIMIT_SIGPENDING) this looks when a SIGCHLD comes. Throws std::system_error
  /// if there is no timer, with `from_now_on`.
  deadline_watch(std::function<times()> due, std::function<nanoseconds()> looks, bool from_now_on);
  ~deadline_watch();
  deadline_watch(const deadline_watch&) = delete;
  deadline_watch& operator=(const deadline_watch&) = delete;

  /// Sends the command, which has not been waited for, and all that it has started, what is due
  /// now. A SIGCHLD, which has to be blocked, says when this is to be called again.
  void act_on(pid_t command);
  /// The command has ended. If that was before the deadline, and without a signal of this watch,
  /// what it has started goes on. Else all of that is ended, and this waits until it is gone.
  void end_rest();
  /// True if a signal was sent.
  [[nodiscard]] bool has_acted() const { return has_acted_; }
  /// True if end_rest() has sent SIGKILL.
  [[nodiscard]] bool has_killed_rest() const { return has_killed_rest_; }

  /// Stops the calling process by calling `stop`, and has it continued for its SIGTERM at the
  /// latest, unless that is never due.
  void stop_until_due(const std::function<void()>& stop) const;

  /// How long before a deadline SIGKILL is sent, so that the command has ended at the deadline.
  static constexpr nanoseconds kill_lead = std::chrono::milliseconds(50);

 private:
  void set_timer(nanoseconds from_now);
  void terminate(pid_t command, const times& due);
  [[nodiscard]] descendants& all(pid_t command);
  [[noreturn]] void wake_when_due(pid_t run) const;

  std::function<times()> due_;
  std::function<nanoseconds()> looks_;
  timer_t timer_{};
  bool has_timer_ = false;
  std::optional<descendants> all_;
  bool is_told_ = false;          // by SIGTERM, about this deadline
  std::uint64_t kill_at_ns_ = 0;  // at the latest, if the command ends after that SIGTERM
  bool has_acted_ = false;
  bool has_killed_rest_ = false;
};

}  // namespace lockflight::cli
