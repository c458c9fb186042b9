// Every way in which a process gets a child with a copy of its memory; only fork() calls handlers.
// The last child shares the descriptors of its parent.
#pragma once

#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdint>

namespace lockflight::test {

/// With that number, if it is not 0, for which the caller has to be root.
inline pid_t fork_by_clone3(pid_t number = 0) {
  clone_args how{};
  how.exit_signal = SIGCHLD;
  if (number != 0) {
    how.set_tid = reinterpret_cast<std::uint64_t>(&number);
    how.set_tid_size = 1;
  }
  return static_cast<pid_t>(syscall(SYS_clone3, &how, sizeof how));
}

/// Kills a process that a test has made. Where a fork is refused, as clone3 is by some containers,
/// its number is -1, by which kill() would reach all processes of the user.
inline void end_made(pid_t process) {
  if (process > 0) kill(process, SIGKILL);
}

struct way_to_fork {
  const char* name;
  pid_t (*fork)();
};
constexpr std::array<way_to_fork, 5> ways_to_fork{{
    {"fork", [] { return ::fork(); }},
    {"_Fork", [] { return ::_Fork(); }},
    {"clone", [] { return static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)); }},
    {"clone3", [] { return fork_by_clone3(); }},
    {"clone_files",
     [] { return static_cast<pid_t>(syscall(SYS_clone, SIGCHLD | CLONE_FILES, 0, 0, 0, 0)); }},
}};

}  // namespace lockflight::test
