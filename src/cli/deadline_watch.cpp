#include "cli/deadline_watch.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/clock.hpp"
#include "lockflight/mode.hpp"

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
    all_.kill(command);
    set_timer(looks_each);
    return;
  }
  if (left > grace_) {
    is_told_ = false;
    set_timer(std::min(left - grace_, looks_each));
    return;
  }
  terminate(command, left);
  set_timer(std::min(valid_for_() - kill_lead, looks_each));
}

void deadline_watch::terminate(pid_t command, nanoseconds left) {
  if (std::exchange(is_told_, true)) return;
  has_acted_ = true;
  kill_at_ns_ = now_ns() + nanoseconds_of(std::min(left, grace_) - kill_lead);
  all_.terminate(command, kill_at_ns_);
}

void deadline_watch::end_rest() {
  if (!has_acted_ && valid_for_().count() > 0) return;
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  nanoseconds pause = std::chrono::milliseconds(1);
  while (!all_.are_gone()) {
    const nanoseconds left = valid_for_() - kill_lead;
    if (left.count() > 0) terminate(0, left + kill_lead);
    const nanoseconds until_kill = std::min(left, nanoseconds(kill_at_ns_) - nanoseconds(now_ns()));
    if (until_kill.count() <= 0) {
      has_killed_rest_ = true;
      all_.kill(0);
      pause = std::min(2 * pause, nanoseconds(looks_each));
    }
    const timespec at_most =
        timespec_of(until_kill.count() > 0 ? std::min(until_kill, nanoseconds(looks_each)) : pause);
    sigtimedwait(&child, nullptr, &at_most);
  }
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
