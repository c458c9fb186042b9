#include "cli/attended.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "base/number.hpp"
#include "base/whole_file.hpp"
#include "cli/guarded.hpp"
#include "cli/proc_files.hpp"
#include "cli/standard_error.hpp"

namespace lockflight::cli {
namespace {

/// A pipe by which a child learns that its parent has died, also a child in a new PID namespace,
/// which does not see its parent: the other end of the pipe is closed then.
class death_pipe {
 public:
  death_pipe() {
    if (pipe2(ends_.data(), O_CLOEXEC) != 0) ends_ = {-1, -1};
  }
  ~death_pipe() {
    for (const int end : ends_)
      if (end >= 0) close(end);
  }
  death_pipe(const death_pipe&) = delete;
  death_pipe& operator=(const death_pipe&) = delete;

  /// True if the parent has died. Called by the child. Async-signal-safe.
  [[nodiscard]] bool has_died() const {
    if (ends_[1] < 0) return false;
    close(ends_[1]);  // the child's own copy
    pollfd other{.fd = ends_[0], .events = 0, .revents = 0};
    return poll(&other, 1, 0) == 1;
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

/// The child between vfork and exec: it shares our memory, and so calls the system and nothing
/// else.
[[noreturn]] void become(char* const* words, const death_pipe& parents, const run_signals& signals,
                         const std::function<void()>& in_child, volatile int& failed) {
  in_child();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // If our parent died before that call, the command must not run.
  if (parents.has_died()) _exit(not_executable);
  signals.give_back_in_child();
  execvp(words[0], words);
  failed = errno;
  _exit(not_found);
}

/// How many processes of our cgroup the kernel has killed for want of memory, if it says so.
std::optional<std::uint64_t> killed_for_memory() {
  const std::string ours = text_if_readable("/proc/self/cgroup");
  const auto path = value_of("0::", ours);  // the line of cgroup v2
  if (!path) return std::nullopt;
  const std::string events =
      text_if_readable("/sys/fs/cgroup" + std::string(*path) + "/memory.events");
  const auto count = value_of("oom_kill ", events);
  if (!count) return std::nullopt;
  return read_number<std::uint64_t>(*count);
}

/// True if this process is in the group of processes that reads the terminal: a shell waits for us
/// then.
bool is_in_foreground() {
  const int terminal = open("/dev/tty", O_RDONLY | O_CLOEXEC | O_NOCTTY);
  if (terminal < 0) return false;
  const bool is = tcgetpgrp(terminal) == getpgrp();
  close(terminal);
  return is;
}

/// True if children start in another PID namespace. If the first process of such a namespace has
/// ended, no other process can be started there.
bool starts_in_another_namespace() {
  struct stat own {};
  struct stat of_children {};
  return stat("/proc/self/ns/pid", &own) == 0 &&
         stat("/proc/self/ns/pid_for_children", &of_children) == 0 &&
         own.st_ino != of_children.st_ino;
}

class attendant {
 public:
  attendant(pid_t child, run_signals& signals, deadline_watch* watch)
      : child_(child), signals_(signals), watch_(watch) {}

  /// Passes signals on until the command has ended. Returns its wait status.
  int attend() {
    return *attend_unless([] { return false; });
  }
  /// As attend(); nothing if `is_over` is true first, which is called after each signal.
  std::optional<int> attend_unless(const std::function<bool()>& is_over) {
    while (true) {
      if (is_over()) return std::nullopt;
      if (const auto status = ended()) return status;
      if (watch_ != nullptr) watch_->act_on(child_);
      siginfo_t signal{};
      const int number = sigwaitinfo(&signals_.blocked(), &signal);
      if (number > 0) heed(number, signal);
    }
  }
  /// The signals that have come to us.
  [[nodiscard]] sigset_t come() const {
    sigset_t pending;
    sigset_t all;
    sigpending(&pending);
    sigorset(&all, &came_, &pending);
    return all;
  }

 private:
  std::optional<int> ended() {
    while (true) {
      int status = 0;
      // The call waits for any child: process 1 of a container has to wait for orphans.
      const pid_t which = waitpid(-1, &status, WNOHANG | WUNTRACED);
      if (which == 0) return std::nullopt;
      if (which < 0 && errno != EINTR)
        throw std::system_error(errno, std::generic_category(),
                                "the end of COMMAND cannot be waited for");
      if (which != child_) continue;
      if (!WIFSTOPPED(status)) return status;
      stop_too();
    }
  }

  void heed(int number, const siginfo_t& signal) {
    if (number == SIGCHLD) return;
    sigaddset(&came_, number);
    if (number == SIGTSTP) is_to_stop_ = true;
    if (number == SIGCONT) is_to_stop_ = false;
    if (!has_reached_command(signal)) kill(child_, number);
  }

  /// A terminal sends Ctrl-C, Ctrl-\ and Ctrl-Z to all processes of its foreground group: to the
  /// command as well as to us, unless it has made a group or a session of its own.
  [[nodiscard]] bool has_reached_command(const siginfo_t& signal) const {
    const int number = signal.si_signo;
    return signal.si_code > 0 && (number == SIGINT || number == SIGQUIT || number == SIGTSTP) &&
           getpgid(child_) == getpgrp();
  }

  /// Called when the command has been stopped. A shell that waits for us has to see us stopped. But
  /// if another process has stopped the command alone, without a terminal, we go on: the process
  /// that continues the command does not know that we would have to be continued, too.
  void stop_too() {
    sigset_t pending;
    sigpending(&pending);
    if (sigismember(&pending, SIGCONT) == 1) return;  // the run is continued already
    if (!is_to_stop_ && sigismember(&pending, SIGTSTP) != 1 && !is_in_foreground()) return;
    is_to_stop_ = false;
    // The SIGCONT that ends this stop is passed on.
    if (watch_ == nullptr)
      signals_.stop_here();
    else
      watch_->stop_until_due([this] { signals_.stop_here(); });
  }

  pid_t child_;
  run_signals& signals_;
  deadline_watch* watch_;
  sigset_t came_ = [] {
    sigset_t none;
    sigemptyset(&none);
    return none;
  }();
  bool is_to_stop_ = false;
};

void say_that_it_cannot_start(const attended& what, int error) {
  say(what.role + " cannot be started: " + std::string(std::strerror(error)) +
      (error == ENOMEM && starts_in_another_namespace()
           ? " (the first process of this PID namespace has ended; 'unshare --fork' keeps one)"
           : ""));
}

void say_that_it_was_killed(const attended& what, std::optional<std::uint64_t> before) {
  const auto now = killed_for_memory();
  say(what.role + " '" + what.name + "' was killed" +
      (before && now && *now > *before
           ? " by the kernel's OOM killer: its cgroup had no memory left"
           : " (SIGKILL)"));
}

ending ending_of(int status, const attendant& by) {
  ending its{.code = WEXITSTATUS(status), .ran = true};
  const sigset_t come = by.come();
  for (const int each : ending_signals)
    if (its.first_to_run == 0 && sigismember(&come, each) == 1) its.first_to_run = each;
  if (!WIFSIGNALED(status)) return its;
  its.code = 128 + WTERMSIG(status);
  // As in a shell, a Ctrl-C that ended the command ends us, too, and with us the loop of a shell
  // that started us. A Ctrl-C that the command has handled, or a signal of its own, does not.
  const int number = WTERMSIG(status);
  if ((number == SIGINT || number == SIGQUIT) && sigismember(&come, number) == 1)
    its.signal_number = number;
  return its;
}

}  // namespace

ending attend_process(pid_t child, run_signals& signals,
                      const std::function<std::optional<ending>()>& news,
                      ending (*ending_by_status)(int status)) {
  std::optional<ending> told;
  attendant by(child, signals, nullptr);
  const auto status = by.attend_unless([&] { return (told = news()).has_value(); });
  // The child may have told it just before it ended.
  if (!told) told = news();
  return told ? *told : ending_by_status(*status);
}

ending run_attended(const attended& what, run_signals& signals,
                    const std::function<void()>& in_child,
                    const std::function<void(pid_t child)>& in_parent, deadline_watch* watch) {
  volatile int failed = 0;
  const death_pipe parents;
  // vfork copies no page table; posix_spawn cannot ask for PR_SET_PDEATHSIG.
  const pid_t child = vfork();
  if (child == 0) become(what.words, parents, signals, in_child, failed);
  if (child < 0) {
    say_that_it_cannot_start(what, errno);
    return {.code = 3};
  }
  in_parent(child);
  const auto killed_before = killed_for_memory();
  attendant by(child, signals, watch);
  const int status = by.attend();
  if (watch != nullptr) watch->end_rest();
  if (failed != 0) {
    say(what.role + " '" + what.name + "' cannot be run: " + std::strerror(failed));
    return {.code = failed == ENOENT ? not_found : not_executable};
  }
  const bool is_ours = watch != nullptr && watch->has_acted();
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && !is_ours)
    say_that_it_was_killed(what, killed_before);
  return ending_of(status, by);
}

}  // namespace lockflight::cli
