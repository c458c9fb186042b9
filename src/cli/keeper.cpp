#include "cli/keeper.hpp"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <system_error>
#include <utility>

#include "base/descriptor.hpp"
#include "base/random_number.hpp"
#include "cli/detach.hpp"
#include "cli/run_signals.hpp"
#include "lockflight/named_control.hpp"

namespace lockflight::cli {
namespace {

using std::chrono::nanoseconds;

[[noreturn]] void keeper_refused(const char* what) {
  throw std::system_error(errno, std::generic_category(), std::string("hold: ") + what);
}

class keeper {
 public:
  keeper(descriptor front, nanoseconds time, std::string note)
      : front_(std::move(front)), time_(time), note_(std::move(note)) {
    of_caller_ = open_descriptors();
    std::erase(of_caller_, front_.get());
  }

  /// False if the hold is to be left as by a death.
  [[nodiscard]] bool keep(named_handle& held, const sigset_t& signals) {
    held.end_after(time_);
    const std::uint64_t token = token_of(held);
    named_control(held).keep(token, note_);
    // From here on the end of the front is noticed by the socket alone.
    prctl(PR_SET_PDEATHSIG, 0);
    if (!is_printed({.token = token, .unit = held.unit(), .pid = getpid()})) return true;
    front_ = descriptor();
    detach(of_caller_);
    return await_end(held, signals);
  }

 private:
  /// A hold that is shared has no token, and two units may have the same: then it is a number that
  /// no other hold is likely to have.
  [[nodiscard]] static std::uint64_t token_of(const named_handle& held) {
    constexpr int bits_more_than_json_has = 11;
    return held.held() == mode::exclusive && held.unit() < 0
               ? held.token()
               : std::max<std::uint64_t>(random_number() >> bits_more_than_json_has, 1);
  }
  [[nodiscard]] bool is_printed(const kept& what) const {
    if (send(front_.get(), &what, sizeof what, MSG_NOSIGNAL) != sizeof what) return false;
    char answer = 0;
    ssize_t got = 0;
    do got = recv(front_.get(), &answer, sizeof answer, 0);
    while (got < 0 && errno == EINTR);
    return got == sizeof answer;
  }
  /// Looks at the hold at each SIGCHLD, which a process that ends the hold sends, and once a
  /// second, as another user may not send it.
  [[nodiscard]] static bool await_end(named_handle& held, const sigset_t& signals) {
    constexpr nanoseconds looks_each = std::chrono::seconds(1);
    for (hold_ending end = held.ending(); end.in.count() > 0; end = held.ending()) {
      if (named_control(held).alone_for().count() == 0 || !held.still_valid()) return false;
      const nanoseconds at_most = std::min(end.in, looks_each);
      const timespec wait{
          .tv_sec = static_cast<time_t>(at_most / std::chrono::seconds(1)),
          .tv_nsec = static_cast<long>((at_most % std::chrono::seconds(1)).count())};
      const int number = sigtimedwait(&signals, nullptr, &wait);
      if (std::ranges::find(ending_signals, number) != ending_signals.end()) return true;
    }
    return held.ending().why != end_reason::broken;
  }

  descriptor front_;
  nanoseconds time_;
  std::string note_;
  std::vector<int> of_caller_;
};

/// The exit code of a front whose keeper has ended without a hold.
int code_of_keeper(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) keeper_refused("the process that is to keep the lock");
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

int run_keeper(guarded_command what, nanoseconds time, const std::string& note,
               const std::function<void(kept)>& print) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
    keeper_refused("no socket");
  descriptor to_keeper(ends[0]);
  descriptor to_front(ends[1]);
  const pid_t front = getpid();
  const pid_t child = fork();
  if (child < 0) keeper_refused("no process");
  if (child == 0) {
    to_keeper = descriptor();
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != front) return 128 + SIGTERM;
    setsid();
    keeper its(std::move(to_front), time, note);
    what.keeps = [&its](named_handle& held, const sigset_t& signals) {
      return its.keep(held, signals);
    };
    return run_guarded(what);
  }
  to_front = descriptor();
  kept what_it_keeps;
  ssize_t got = 0;
  do got = recv(to_keeper.get(), &what_it_keeps, sizeof what_it_keeps, 0);
  while (got < 0 && errno == EINTR);
  if (got != sizeof what_it_keeps) return code_of_keeper(child);
  print(what_it_keeps);
  constexpr char printed = 1;
  send(to_keeper.get(), &printed, sizeof printed, MSG_NOSIGNAL);
  return 0;
}

}  // namespace lockflight::cli
