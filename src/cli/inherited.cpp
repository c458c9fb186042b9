#include "cli/inherited.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>

#include "cli/detach.hpp"
#include "cli/proc_files.hpp"
#include "cli/run_signals.hpp"
#include "cli/standard_error.hpp"

namespace lockflight::cli {
namespace {

[[noreturn]] void refused(const char* what) {
  throw std::system_error(errno, std::generic_category(), std::string("--inherit: ") + what);
}

/// The message of the supervisor to the front process, if that is to end before it.
struct end_of_command {
  int code = 0;
  int signal_number = 0;
};

/// The message that the front process has got, or nothing. Does not wait.
std::optional<ending> received(int from) {
  end_of_command its;
  if (recv(from, &its, sizeof its, MSG_DONTWAIT) != sizeof its) return std::nullopt;
  return ending{.code = its.code, .ran = true, .signal_number = its.signal_number};
}

/// The end of the front process, from that of a supervisor that had no inheritors to wait for.
ending ending_as_supervisor(int status) {
  if (!WIFSIGNALED(status)) return {.code = WEXITSTATUS(status), .ran = true};
  const int number = WTERMSIG(status);
  ending its{.code = 128 + number, .ran = true};
  if (std::ranges::find(ending_signals, number) != ending_signals.end())
    its.signal_number = number;
  else
    say("the process that held the lock for COMMAND has ended by signal " + std::to_string(number) +
        ", and COMMAND with it");
  return its;
}

}  // namespace

inheritance::inheritance(descriptor front, int front_pid)
    : front_(std::move(front)), front_pid_(front_pid), of_caller_(open_descriptors()) {
  std::erase(of_caller_, front_.get());
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) refused("no pipe");
  reading_ = descriptor(ends[0]);
  writing_ = descriptor(ends[1]);
}

// The other end of the socket shows whether the front process is there: a process in a new PID
// namespace does not see its parent.
bool inheritance::has_front() const {
  pollfd front{.fd = front_.get(), .events = 0, .revents = 0};
  return poll(&front, 1, 0) != 1;
}

void inheritance::pass_on() const noexcept {
  constexpr int out_of_the_way = 10;  // as shells do
  // A process may have fewer descriptors than that: then COMMAND has it under its present number.
  if (fcntl(writing_.get(), F_DUPFD, out_of_the_way) < 0) fcntl(writing_.get(), F_SETFD, 0);
}

// An inheritor may have written to the pipe: only that its other end is closed counts.
bool inheritance::has_inheritors() const {
  pollfd end{.fd = reading_.get(), .events = 0, .revents = 0};
  poll(&end, 1, 0);
  return (end.revents & POLLHUP) == 0;
}

void inheritance::go_to_background(const ending& its) {
  const end_of_command sent{its.code, its.signal_number};
  // The send fails if the front process was killed.
  send(front_.get(), &sent, sizeof sent, MSG_NOSIGNAL);
  if (getppid() == front_pid_) kill(front_pid_, SIGCHLD);
  front_ = descriptor();
  detach(of_caller_);
}

// Searches in the order of process numbers, to find an inheritor that has been there for long.
pid_t inheritance::an_inheritor() const {
  struct stat passed_on {};
  if (fstat(reading_.get(), &passed_on) != 0) return 0;
  const auto has_it = [&](const std::string& folder) {
    return std::ranges::any_of(numbers_in(folder), [&](int each) {
      struct stat its {};
      return stat((folder + "/" + std::to_string(each)).c_str(), &its) == 0 &&
             its.st_dev == passed_on.st_dev && its.st_ino == passed_on.st_ino;
    });
  };
  for (const int pid : numbers_in("/proc"))
    if (pid != getpid() && has_it("/proc/" + std::to_string(pid) + "/fd")) return pid;
  return 0;
}

// Bytes that an inheritor writes are read and dropped: only the end of the pipe counts.
bool inheritance::await_end_of(const descriptor& inheritor) const {
  std::array<char, 256> written{};
  while (true) {
    std::array<pollfd, 2> ends{{{.fd = reading_.get(), .events = POLLIN, .revents = 0},
                                {.fd = inheritor.get(), .events = POLLIN, .revents = 0}}};
    if (poll(ends.data(), ends.size(), -1) < 0) continue;  // interrupted
    if (ends[0].revents != 0) {
      const ssize_t got = read(reading_.get(), written.data(), written.size());
      if (got == 0 || (got < 0 && errno != EINTR)) return false;
    }
    if (ends[1].revents != 0) return true;
  }
}

void inheritance::await_inheritors(const std::function<void(pid_t inheritor)>& shown) const {
  descriptor inheritor;
  do {
    const pid_t pid = an_inheritor();
    shown(pid);
    inheritor = descriptor(pid == 0 ? -1 : static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  } while (await_end_of(inheritor));
}

int run_inherited(const std::function<int(inheritance&)>& supervise) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) refused("no socket");
  descriptor front(ends[0]);
  descriptor supervisor(ends[1]);
  const pid_t us = getpid();
  // No signal ends the front process from here on, until it passes them on: the supervisor would be
  // alone.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, &before);
  const pid_t child = fork();
  if (child == 0) {
    sigprocmask(SIG_SETMASK, &before, nullptr);
    front = descriptor();
    inheritance its(std::move(supervisor), us);
    return supervise(its);
  }
  if (child < 0) {
    const int error = errno;
    sigprocmask(SIG_SETMASK, &before, nullptr);
    errno = error;
    refused("no process");
  }
  supervisor = descriptor();
  run_signals signals;
  signals.block();
  const ending its = attend_process(
      child, signals, [&] { return received(front.get()); }, ending_as_supervisor);
  return its.signal_number == 0 ? its.code : end_by(its.signal_number);
}

}  // namespace lockflight::cli
