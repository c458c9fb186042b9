#include "cli/guarded.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "lockflight/domain.hpp"

namespace lockflight::cli {
namespace {

constexpr std::array passed_on{SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

/// While this object exists, signals wait: none ends us between the acquire and the release.
class signals_held {
 public:
  signals_held() {
    sigemptyset(&held_);
    for (const int each : passed_on) sigaddset(&held_, each);
    sigaddset(&held_, SIGCHLD);
    sigprocmask(SIG_BLOCK, &held_, &before_);
  }
  ~signals_held() { sigprocmask(SIG_SETMASK, &before_, nullptr); }
  signals_held(const signals_held&) = delete;
  signals_held& operator=(const signals_held&) = delete;

  [[nodiscard]] const sigset_t& held() const { return held_; }
  [[nodiscard]] const sigset_t& before() const { return before_; }

 private:
  sigset_t held_{};
  sigset_t before_{};
};

bool acquire(named_lock& lock, const guarded_command& what) {
  if (!what.within_ns) {
    what.shared ? lock.lock_shared() : lock.lock();
    return true;
  }
  if (*what.within_ns == 0) return what.shared ? lock.try_lock_shared() : lock.try_lock();
  return what.shared ? lock.try_lock_shared_within(*what.within_ns)
                     : lock.try_lock_within(*what.within_ns);
}

void release(named_lock& lock, bool shared) { shared ? lock.unlock_shared() : lock.unlock(); }

/// What the command finds in its environment. A run inside of a run inherits nothing of the outer.
void tell_command(const named_lock& lock, bool shared) {
  setenv("LOCKFLIGHT_LOCK", lock.name().c_str(), 1);
  if (shared)
    unsetenv("LOCKFLIGHT_TOKEN");
  else
    setenv("LOCKFLIGHT_TOKEN", std::to_string(lock.token()).c_str(), 1);
  if (lock.owner_died())
    setenv("LOCKFLIGHT_OWNER_DIED", "1", 1);
  else
    unsetenv("LOCKFLIGHT_OWNER_DIED");
}

/// The child between vfork and exec: it shares our memory, and so calls the system and nothing
/// else.
[[noreturn]] void become(char* const* words, pid_t parent, const sigset_t& mask,
                         volatile int& failed) {
  // Without us the lock is free, and the command must not go on unguarded.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(not_executable);  // we died before that call
  for (const int each : passed_on) {
    struct sigaction action {};
    sigaction(each, nullptr, &action);
    if (action.sa_handler == SIG_IGN) continue;  // as nohup has asked
    action.sa_handler = SIG_DFL;
    sigaction(each, &action, nullptr);
  }
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  execvp(words[0], words);
  failed = errno;
  _exit(not_found);
}

/// A terminal sends Ctrl-C and Ctrl-\ to the command as well as to us.
bool came_from_terminal(const siginfo_t& signal) {
  return signal.si_code > 0 && (signal.si_signo == SIGINT || signal.si_signo == SIGQUIT);
}

/// Passes signals on until the command ends. Returns its exit code.
int attend(pid_t child, const sigset_t& held) {
  while (true) {
    int status = 0;
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child) return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    if (ended < 0 && errno != EINTR) return not_executable;
    siginfo_t signal{};
    const int number = sigwaitinfo(&held, &signal);
    if (number > 0 && number != SIGCHLD && !came_from_terminal(signal)) kill(child, number);
  }
}

/// Exit code and whether the command ran at all.
struct ending {
  int code;
  bool ran;
};

ending run_command(const guarded_command& what, const signals_held& signals) {
  volatile int failed = 0;
  const pid_t parent = getpid();
  // vfork copies no page table; posix_spawn cannot ask for PR_SET_PDEATHSIG.
  const pid_t child = vfork();
  if (child == 0) become(what.words.data(), parent, signals.before(), failed);
  if (child < 0) {
    std::fprintf(stderr, "lockflight run: no process can be started: %s\n", std::strerror(errno));
    return {3, false};
  }
  const int code = attend(child, signals.held());
  if (failed == 0) return {code, true};
  std::fprintf(stderr, "lockflight run: COMMAND '%s' cannot be run: %s\n", what.words.front(),
               std::strerror(failed));
  return {failed == ENOENT ? not_found : not_executable, false};
}

/// Nothing follows the number.
template <class T>
bool reads_whole(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

/// Reads an option that has a value. False if it is not sound.
bool read_value(std::string_view option, std::string_view value, guarded_command& to) {
  if (value.empty() || value.starts_with('-')) return false;
  if (option == "--domain") {
    to.domain = value;
    return true;
  }
  if (option == "--timeout") {
    double seconds = 0;
    if (to.within_ns || !reads_whole(value, seconds) || !(seconds >= 0) || seconds > longest_wait_s)
      return false;
    to.within_ns = static_cast<std::uint64_t>(seconds * 1e9);
    return true;
  }
  return (option == "-E" || option == "--conflict-exit-code") &&
         reads_whole(value, to.conflict_exit_code) && to.conflict_exit_code >= 0 &&
         to.conflict_exit_code <= 255;
}

bool acceptable(std::string_view name) {
  constexpr std::size_t longest = 255;
  return !name.empty() && name.size() <= longest && name.find('\n') == std::string_view::npos;
}

}  // namespace

int run_guarded(const guarded_command& what) {
  // Where our parent ignored it, the system would not tell us how the command ended.
  signal(SIGCHLD, SIG_DFL);
  const domain in = domain::open(what.domain);
  // Always a lock that can be shared: exclusive and shared uses of a name are of one lock.
  named_lock lock(in, what.name, {.kind = "flight-rw"});
  std::optional<signals_held> signals(std::in_place);
  guarded_command at_once = what;
  at_once.within_ns = 0;
  if (!acquire(lock, at_once)) {
    if (what.within_ns == 0) return what.conflict_exit_code;
    signals.reset();  // a waiter may be interrupted
    if (!acquire(lock, what)) return what.conflict_exit_code;
    signals.emplace();
  }
  tell_command(lock, what.shared);
  const ending its = run_command(what, *signals);
  if (its.ran && its.code == 0 && !what.shared && lock.owner_died()) lock.mark_consistent();
  release(lock, what.shared);
  return its.code;
}

std::optional<guarded_command> sound_run_line(int argc, char** argv) {
  guarded_command found;
  int at = 2;
  for (; at < argc && std::string_view(argv[at]) != "--"; ++at) {
    const std::string_view word(argv[at]);
    if (word == "--shared") {
      found.shared = true;
    } else if (word == "--nonblock") {
      if (found.within_ns) return std::nullopt;
      found.within_ns = 0;
    } else if (word.starts_with('-')) {
      if (at + 1 >= argc || !read_value(word, argv[at + 1], found)) return std::nullopt;
      ++at;
    } else {
      if (!found.name.empty() || !acceptable(word)) return std::nullopt;
      found.name = word;
    }
  }
  if (found.name.empty() || at + 1 >= argc) return std::nullopt;
  found.words.assign(argv + at + 1, argv + argc);
  found.words.push_back(nullptr);
  return found;
}

}  // namespace lockflight::cli
