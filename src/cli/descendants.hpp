// The processes that COMMAND of `lockflight run` has started, that these have started, and so on,
// COMMAND included.
//
// This process is a subreaper (prctl(2)) from the time when it makes an object of this class: a
// process whose parent has ended becomes its child. So the descendants are a tree below this
// process, also after a double fork and setsid(2), until they have ended. Processes are found by
// the lists of children in /proc. Without these lists COMMAND alone is signalled, but are_gone()
// still knows when all have ended.
//
// Not found: a process that was started inside of a PID namespace that existed before, and whose
// parent has ended; and what other services start when they are asked to.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace lockflight::cli {

class descendants {
 public:
  /// Children that this process has by now, as one that a shell has become may have, are not
  /// counted, but for `command`, which is 0 if it has not been started.
  explicit descendants(pid_t command = 0);

  /// Sends SIGTERM to all that are there now; to those that it has found at `until_ns` if they are
  /// so many. Those that are stopped go on, to end themselves. `command` is a child that has not
  /// been waited for, or 0.
  void terminate(pid_t command, std::uint64_t until_ns) const;
  /// Sends SIGKILL to all. The kernel may leave out children in a list that changes meanwhile, so
  /// this is called again until are_gone(). A second after the first call it names the processes
  /// that are still there, on standard error.
  void kill(pid_t command);
  /// True if none is left. Waits for the children of this process that have ended.
  [[nodiscard]] bool are_gone();

  /// A process of /proc. Numbers are used again; together with its start they name one process.
  struct process {
    pid_t pid = 0;
    pid_t parent = 0;
    std::uint64_t born = 0;  ///< in ticks since the boot
    char state = 0;
    std::string name;

    [[nodiscard]] bool is(const process& other) const {
      return pid == other.pid && born == other.born;
    }
  };

 private:
  [[nodiscard]] std::vector<process> children() const;
  [[nodiscard]] std::vector<process> found_until(std::uint64_t until_ns) const;
  void kill_children(pid_t command) const;
  void say_who_is_left() const;

  std::vector<process> earlier_;
  std::uint64_t killed_at_ns_ = 0;  ///< the first time; 0: not yet
  bool has_said_ = false;
};

}  // namespace lockflight::cli
