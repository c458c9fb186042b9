// The command of `lockflight run`: it is started, attended until it has ended, and stopped and
// continued together with the run.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>

#include "cli/deadline_watch.hpp"
#include "cli/run_signals.hpp"

namespace lockflight::cli {

struct ending {
  int code = 0;           ///< the exit code of the run
  bool ran = false;       ///< the command was there and could be executed
  int signal_number = 0;  ///< the run ends by this signal, as its command did; 0: it exits
  int first_to_run = 0;   ///< of the signals that end a run, one that came to the run; 0: none
};

/// A command that a run starts.
struct attended {
  char* const* words;  ///< a null pointer ends them
  std::string role;    ///< the name in messages: COMMAND
  std::string name;    ///< and which one it is
};

/// Runs that command. Signals are blocked. `in_child` is called between vfork and exec, and
/// `in_parent` after that. `watch` ends the command at a deadline; null: there is none. Errors are
/// reported on standard error. Throws std::system_error if the end of the command cannot be
/// noticed.
[[nodiscard]] ending run_attended(const attended& what, run_signals& signals,
                                  const std::function<void()>& in_child,
                                  const std::function<void(pid_t child)>& in_parent,
                                  deadline_watch* watch);

/// Attends a child of this process in the same way until it has ended, or until `news` returns an
/// ending, which is asked after each signal. Signals are blocked. `ending_by_status` makes an
/// ending of the wait status of a child that has ended.
[[nodiscard]] ending attend_process(pid_t child, run_signals& signals,
                                    const std::function<std::optional<ending>()>& news,
                                    ending (*ending_by_status)(int status));

}  // namespace lockflight::cli
