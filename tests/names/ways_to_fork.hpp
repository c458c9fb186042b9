// Every way in which a process gets a child with a copy of its memory; only fork() calls handlers.
// The last child shares the descriptors of its parent.
#pragma once

#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <string_view>

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

/// True when a page with MADV_WIPEONFORK is empty in a child. qemu-user accepts that advice and
/// does not follow it.
inline bool kernel_wipes_pages() {
  const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  auto& word = *new (at) int{1};
  const bool is_advised = madvise(at, bytes, MADV_WIPEONFORK) == 0;
  const pid_t made = ::fork();
  if (made == 0) _exit(word);
  int status = -1;
  const bool is_wiped = waitpid(made, &status, 0) == made && status == 0;
  munmap(at, bytes);
  return is_advised && is_wiped;
}

/// Whether lockflight notices that a child made this way is another process than its parent: only
/// fork() calls handlers, and children of the other ways find a page wiped.
inline bool is_noticed(const way_to_fork& way) {
  static const bool wipes = kernel_wipes_pages();
  return wipes || std::string_view(way.name) == "fork";
}

}  // namespace lockflight::test
