#include "cli/deadline_watch.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

namespace lockflight::cli {
namespace {

timespec timespec_of(std::chrono::nanoseconds span) {
  constexpr std::int64_t second = 1'000'000'000;
  // A timer that is set to 0 does not run.
  const std::int64_t ns = std::max<std::int64_t>(span.count(), 1);
  return {.tv_sec = static_cast<time_t>(ns / second), .tv_nsec = static_cast<long>(ns % second)};
}

}  // namespace

// The clock of the deadlines, which goes on while the machine sleeps.
deadline_watch::deadline_watch(std::function<nanoseconds()> valid_for, nanoseconds grace)
    : valid_for_(std::move(valid_for)), grace_(std::max(grace, kill_lead)) {
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGCHLD;
  if (timer_create(CLOCK_BOOTTIME, &event, &timer_) != 0)
    throw std::system_error(errno, std::generic_category(), "a timer for the lock's deadline");
}

deadline_watch::~deadline_watch() { timer_delete(timer_); }

void deadline_watch::act_on(pid_t command) {
  const nanoseconds left = valid_for_();
  if (left <= kill_lead) {
    has_acted_ = true;
    kill(command, SIGKILL);
    return;
  }
  if (left > grace_) {
    is_told_ = false;
    set_timer(std::min(left - grace_, looks_each));
    return;
  }
  if (!std::exchange(is_told_, true)) {
    has_acted_ = true;
    kill(command, SIGTERM);
    kill(command, SIGCONT);  // a command that is stopped can end itself only when it goes on
  }
  set_timer(std::min(left - kill_lead, looks_each));
}

void deadline_watch::set_timer(nanoseconds from_now) {
  const itimerspec once{.it_interval = {}, .it_value = timespec_of(from_now)};
  timer_settime(timer_, 0, &once, nullptr);
}

void deadline_watch::stop_until_due(const std::function<void()>& stop) const {
  const pid_t run = getpid();
  const pid_t waker = fork();
  if (waker == 0) wake_when_due(run);
  // A run that nobody would wake does not stop.
  if (waker < 0) return;
  stop();
  kill(waker, SIGKILL);
  waitpid(waker, nullptr, 0);
}

// The waker inherits the blocked signals, and has a group of its own, so that the terminal's
// signals do not stop it.
void deadline_watch::wake_when_due(pid_t run) const {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != run) _exit(0);
  while (!is_due()) {
    const timespec until_due = timespec_of(valid_for_() - grace_);
    clock_nanosleep(CLOCK_BOOTTIME, 0, &until_due, nullptr);
  }
  kill(run, SIGCONT);
  _exit(0);
}

}  // namespace lockflight::cli
