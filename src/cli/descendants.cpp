#include "cli/descendants.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "base/clock.hpp"
#include "base/descriptor.hpp"
#include "base/number.hpp"
#include "base/whole_file.hpp"
#include "cli/proc_files.hpp"
#include "cli/standard_error.hpp"

namespace lockflight::cli {
namespace {

using process = descendants::process;

constexpr std::uint64_t second_ns = 1'000'000'000;

std::string folder_of(const std::string& pid) { return "/proc/" + pid; }

/// The process that has that number now, or "self". In a /proc of another PID namespace the numbers
/// are that one's.
std::optional<process> process_at(const std::string& pid) {
  const std::string line = text_if_readable(folder_of(pid) + "/stat");
  // The name is in parentheses and may contain any character.
  const std::size_t name = line.find('(');
  const std::size_t end = line.rfind(')');
  if (name == std::string::npos || end == std::string::npos) return std::nullopt;
  process its;
  its.pid = read_number<pid_t>(line.substr(0, name - 1)).value_or(0);
  its.name = line.substr(name + 1, end - name - 1);
  // The state is the third field, and the start the 22nd.
  unsigned long long born = 0;
  const bool is_whole =
      std::sscanf(line.c_str() + end + 1,
                  " %c %d %*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s %llu", &its.state,
                  &its.parent, &born) == 3;
  its.born = born;
  return is_whole ? std::optional(its) : std::nullopt;
}

/// False in a /proc of another PID namespace: its numbers are not for kill(2). This process has a
/// number in each namespace from that of /proc to its own.
bool has_our_numbers() {
  const std::string status = text_if_readable("/proc/self/status");
  const auto numbers = value_of("NSpid:\t", status);
  return numbers && read_number<pid_t>(*numbers) == getpid();
}

/// The numbers of the children of that process, or of "self".
std::vector<std::string> child_numbers(const std::string& parent) {
  std::vector<std::string> all;
  const std::string threads = folder_of(parent) + "/task";
  for (const int thread : numbers_in(threads)) {
    std::string list = text_if_readable(threads + "/" + std::to_string(thread) + "/children");
    std::ranges::replace(list, ' ', '\n');
    for_each_line(list, [&](std::string_view each) {
      if (!each.empty()) all.emplace_back(each);
    });
  }
  return all;
}

std::vector<process> children_of(const process& parent) {
  std::vector<process> all;
  const std::string pid = std::to_string(parent.pid);
  for (const std::string& each : child_numbers(pid))
    if (auto child = process_at(each); child && child->parent == parent.pid)
      all.push_back(*std::move(child));
  // If the parent has ended, its number may be another process's by now.
  const auto now = process_at(pid);
  return now && now->is(parent) ? all : std::vector<process>();
}

std::vector<process> children_of(const std::vector<process>& parents) {
  std::vector<process> all;
  for (const process& each : parents) std::ranges::move(children_of(each), std::back_inserter(all));
  return all;
}

/// Returns 0, or an error. A folder of /proc stands for one process, and not for a number, as a
/// descriptor of pidfd_open(2) does.
int send_signal(const process& to, int signal_number) {
  const std::string pid = std::to_string(to.pid);
  const descriptor folder(open(folder_of(pid).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const auto now = process_at(pid);
  if (!folder || !now || !now->is(to)) return ESRCH;
  if (syscall(SYS_pidfd_send_signal, folder.get(), signal_number, nullptr, 0) == 0) return 0;
  if (errno != ENOSYS) return errno;  // else: Linux before 5.1
  if (!has_our_numbers()) return ENOSYS;
  return ::kill(to.pid, signal_number) == 0 ? 0 : errno;
}

/// True if that child has ended, and was not waited for. False for 0.
bool has_ended(pid_t child) {
  siginfo_t ended{};
  return child != 0 &&
         waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         ended.si_pid != 0;
}

/// As long as an object of this class is there, children that end need not be waited for. Else the
/// list of children would grow and slow down each pass over it.
class without_zombies {
 public:
  without_zombies() {
    sigaction(SIGCHLD, nullptr, &before_);
    struct sigaction action = before_;
    action.sa_flags |= SA_NOCLDWAIT;
    sigaction(SIGCHLD, &action, nullptr);
  }
  ~without_zombies() { sigaction(SIGCHLD, &before_, nullptr); }
  without_zombies(const without_zombies&) = delete;
  without_zombies& operator=(const without_zombies&) = delete;

 private:
  struct sigaction before_ {};
};

}  // namespace

descendants::descendants(pid_t command) {
  // If the kernel refuses, as qemu's emulation of one does, orphans are not found.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  earlier_ = children();
  std::erase_if(earlier_, [command](const process& each) { return each.pid == command; });
}

std::vector<process> descendants::children() const {
  const auto self = process_at("self");
  if (!self) return {};
  std::vector<process> all = children_of(*self);
  std::erase_if(all, [&](const process& each) {
    return std::ranges::any_of(earlier_, [&](const process& other) { return other.is(each); });
  });
  return all;
}

std::vector<process> descendants::found_until(std::uint64_t until_ns) const {
  std::vector<process> found;
  for (std::vector<process> level = children(); !level.empty();
       level = now_ns() < until_ns ? children_of(level) : std::vector<process>())
    found.insert(found.end(), level.begin(), level.end());
  return found;
}

void descendants::terminate(pid_t command, std::uint64_t until_ns) const {
  // The list is complete before the first signal: a process that another one starts at its SIGTERM,
  // in order to clean up, is not ended.
  const std::vector<process> found = found_until(until_ns);
  for (const process& each : found) {
    send_signal(each, SIGTERM);
    send_signal(each, SIGCONT);
  }
  if (!found.empty() || command == 0) return;
  ::kill(command, SIGTERM);
  ::kill(command, SIGCONT);
}

// A child keeps its number until it is waited for, so it is signalled by that number. The signals
// follow the list at once, the youngest child first: a child that starts another process and ends
// before its signal comes leaves the new process as the next child.
void descendants::kill_children(pid_t command) const {
  if (!has_our_numbers()) return;
  std::set<std::string> before;
  for (bool finds_more = true; finds_more && !has_ended(command);) {
    std::set<std::string> now;
    finds_more = false;
    std::vector<std::string> numbers = child_numbers("self");
    std::ranges::reverse(numbers);
    for (const std::string& each : numbers) {
      const pid_t pid = read_number<pid_t>(each).value_or(0);
      const auto is_it = [&](const process& earlier) { return earlier.pid == pid; };
      if (pid <= 0 || std::ranges::any_of(earlier_, is_it)) continue;
      ::kill(pid, SIGKILL);
      finds_more |= !before.contains(each);
      now.insert(each);
    }
    before = std::move(now);
  }
}

// After SIGKILL a process forks no more. So its children are read after that; if it has ended
// before, they are children of this process, which the next pass begins with.
void descendants::kill(pid_t command) {
  // Where this user may do so: else thousands that compute or fork leave this process little time.
  // A real-time policy would keep processes that end from the processor, for which waitpid(2) and
  // /proc may wait without sleeping.
  setpriority(PRIO_PROCESS, 0, -20);
  if (command != 0) ::kill(command, SIGKILL);
  std::optional<without_zombies> quicker;
  if (command == 0) quicker.emplace();
  std::set<std::pair<pid_t, std::uint64_t>> sent;
  for (std::size_t before = 1; before != sent.size() && !has_ended(command);) {
    before = sent.size();
    kill_children(command);
    for (std::vector<process> level = children(); !level.empty(); level = children_of(level))
      for (const process& each : level)
        if (sent.emplace(each.pid, each.born).second) send_signal(each, SIGKILL);
  }
  if (killed_at_ns_ == 0) killed_at_ns_ = now_ns();
  if (now_ns() - killed_at_ns_ >= second_ns && !std::exchange(has_said_, true)) say_who_is_left();
}

bool descendants::are_gone() {
  pid_t ended = 0;
  do ended = waitpid(-1, nullptr, WNOHANG);
  while (ended > 0 || (ended < 0 && errno == EINTR));
  if (ended < 0) return true;  // this process has no child
  return !earlier_.empty() && children().empty();
}

void descendants::say_who_is_left() const {
  constexpr std::size_t most = 8;
  std::vector<process> left = found_until(now_ns() + second_ns);
  std::erase_if(left, [](const process& each) { return each.state == 'Z'; });
  std::string who;
  for (const process& each : std::span(left).first(std::min(left.size(), most)))
    who += (who.empty() ? "process " : ", process ") + std::to_string(each.pid) + " '" + each.name +
           "'" + (send_signal(each, SIGKILL) == EPERM ? ", which this user may not end" : "");
  if (left.size() > most) who += ", and " + std::to_string(left.size() - most) + " more";
  siginfo_t child{};
  if (left.empty() && waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT) == 0)
    who = "processes that /proc does not show";
  if (!who.empty()) say("waits for what COMMAND has started and SIGKILL has not ended: " + who);
}

}  // namespace lockflight::cli
