// Ends the command of `lockflight run`, and all that it has started, before its host may no longer
// count as a member of the cluster: SIGTERM some time before the deadline, and SIGKILL shortly
// before it. While the agent renews the membership, the deadline moves on, and nothing happens.
//
// Progress: the watch belongs to the run, so it does nothing while somebody has stopped the run by
// SIGSTOP. A Ctrl-Z stops the run, too, but a process that is not stopped wakes it in time.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <ctime>
#include <functional>

#include "cli/descendants.hpp"

namespace lockflight::cli {

class deadline_watch {
 public:
  using nanoseconds = std::chrono::nanoseconds;

  /// `valid_for` says how far ahead the deadline is. The SIGTERM comes `grace` before it; with a
  /// grace of less than `kill_lead` there is none. Throws std::system_error if there is no timer.
  deadline_watch(std::function<nanoseconds()> valid_for, nanoseconds grace);
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

  /// Stops the calling process by calling `stop`, and has it continued `grace` before the deadline
  /// at the latest.
  void stop_until_due(const std::function<void()>& stop) const;

 private:
  [[nodiscard]] bool is_due() const { return valid_for_() <= grace_; }
  void set_timer(nanoseconds from_now);
  void terminate(pid_t command, nanoseconds left);
  [[noreturn]] void wake_when_due(pid_t run) const;

  /// How long before the deadline SIGKILL is sent, so that the command has ended at the deadline.
  static constexpr nanoseconds kill_lead = std::chrono::milliseconds(50);

  /// The agent may set the deadline back, as when another host has renewed in this one's place.
  static constexpr nanoseconds looks_each = std::chrono::milliseconds(200);

  std::function<nanoseconds()> valid_for_;
  nanoseconds grace_;
  timer_t timer_{};
  descendants all_;
  bool is_told_ = false;          // by SIGTERM, about this deadline
  std::uint64_t kill_at_ns_ = 0;  // at the latest, if the command ends after that SIGTERM
  bool has_acted_ = false;
  bool has_killed_rest_ = false;
};

}  // namespace lockflight::cli
