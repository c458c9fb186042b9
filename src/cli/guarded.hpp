// Runs a command while a named lock is held: the work of `lockflight run` once its line is read.
#pragma once

#include <chrono>
#include <csignal>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/domain_name.hpp"
#include "cli/periods.hpp"
#include "cli/wait_message.hpp"
#include "lockflight/domain.hpp"
#include "tool/command.hpp"

namespace lockflight::cli {

struct guarded_command {
  std::vector<std::string> names;  ///< one, or several locks that are taken together
  domain_name in;
  mode held = mode::exclusive;
  std::optional<lockflight::units> units;  ///< of a semaphore; none: a lock
  limit patience = limit::for_ever();
  bool waits_anyway = false;              ///< also for a run around this one
  bool fails_on_deadlock = false;         ///< gives up if it waits in a circle
  std::optional<int> conflict_exit_code;  ///< none: 1, or 0 if the period is done
  /// In a cluster: the time between SIGTERM and the deadline. None: a 25th of the time to live.
  /// After the end of a hold the time between SIGTERM and SIGKILL. None: usual_grace_after_end.
  std::optional<std::chrono::nanoseconds> grace;
  std::optional<std::chrono::nanoseconds> max_hold;  ///< then the hold ends
  std::optional<wall_seconds> period;  ///< the command runs once in each period of time
  bool notes_success = false;          ///< a period is done when COMMAND has ended with 0
  int retries = 0;                     ///< how often COMMAND runs again after a failure
  std::chrono::nanoseconds backoff{1'000'000'000};  ///< before the first of them; it doubles
  bool follows = false;                             ///< ends as the run that it has waited for
  bool leads = false;                               ///< to be said when the lock is held
  int priority = 0;                                 ///< of a candidate
  std::optional<std::string> value;  ///< of a leader, for its observers (election.hpp)
  wait_message::kind says = wait_message::kind::none;  ///< while it waits
  bool says_who_holds = false;  ///< when it gives up; in a cluster's domain unless it is silent
  bool is_silent = false;
  int events = -1;                       ///< the descriptor for lines of JSON; -1: none
  bool inherits = false;                 ///< processes that COMMAND leaves running keep the lock
  std::chrono::nanoseconds at_least{0};  ///< the lock is held so long, also if COMMAND is quicker
  /// The action if a holder has died: COMMAND runs and finds that in its environment, or does not
  /// run, or `repair` runs before it in a shell.
  enum class after_death : std::uint8_t { run, fail, repair } on_owner_died = after_death::run;
  std::string repair;
  /// Keeps the lock, in place of a command, until one of these blocked signals ends that. False if
  /// the hold was lost or broken.
  std::function<bool(named_handle& held, const sigset_t& signals)> keeps;
  std::vector<char*> words;  ///< the command and its arguments; a null pointer ends them
};

/// The lock was lost while the command ran. EX_PROTOCOL of sysexits.h, which no shell gives.
constexpr int lost_lock = 76;
/// A holder had died, so COMMAND was not run. EX_DATAERR of sysexits.h.
constexpr int not_repaired = 65;
constexpr int not_executable = 126;
constexpr int not_found = 127;
/// The longest time to wait, in seconds. A week is 604,800.
constexpr double most_wait_s = 1e9;

/// The settings in the options of `lockflight run`, or in those of them that another command has,
/// without the command that is run. Throws usage_error.
[[nodiscard]] guarded_command guarded_from(const tool::arguments& given);

/// Returns the command's exit code, 128 + n after signal n, or one of the codes above; or ends the
/// process by a signal when main() returns (run_signals.hpp). Throws domain_error and
/// std::system_error.
[[nodiscard]] int run_guarded(const guarded_command& what);

}  // namespace lockflight::cli
