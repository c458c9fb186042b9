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

/// The agent may set a deadline back, as when another host has renewed in this one's place.
constexpr std::chrono::nanoseconds looks_each = std::chrono::milliseconds(200);

}  // namespace

deadline_watch::deadline_watch(std::function<times()> due, std::function<nanoseconds()> looks,
                               bool from_now_on)
    : due_(std::move(due)), looks_(std::move(looks)) {
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGCHLD;
  has_timer_ = timer_create(CLOCK_BOOTTIME, &event, &timer_) == 0;
  if (!has_timer_ && from_now_on)
    throw std::system_error(errno, std::generic_category(), "a timer for the lock's deadline");
  if (from_now_on) all_.emplace(0);
}

deadline_watch::~deadline_watch() {
  if (has_timer_) timer_delete(timer_);
}

void deadline_watch::act_on(pid_t command) {
  const nanoseconds look_again = looks_();
  const times due = due_();
  if (due.kill.count() <= 0) {
    has_acted_ = true;
    all(command).kill(command);
    set_timer(looks_each);
    return;
  }
  if (due.term.count() > 0) {
    is_told_ = false;
    set_timer(std::min(due.term, look_again));
    return;
  }
  terminate(command, due);
  set_timer(std::min(due_().kill, looks_each));
}

void deadline_watch::terminate(pid_t command, const times& due) {
  if (std::exchange(is_told_, true)) return;
  has_acted_ = true;
  // At most as long after this SIGTERM as SIGKILL is due after SIGTERM.
  kill_at_ns_ = now_ns() + nanoseconds_of(std::min(due.kill, due.kill - due.term));
  all(command).terminate(command, kill_at_ns_);
}

descendants& deadline_watch::all(pid_t command) { return all_ ? *all_ : all_.emplace(command); }

void deadline_watch::end_rest() {
  if (!has_acted_ && due_().kill > -kill_lead) return;
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  nanoseconds pause = std::chrono::milliseconds(1);
  while (!all(0).are_gone()) {
    const times due = due_();
    if (due.kill.count() > 0) terminate(0, due);
    const nanoseconds until_kill =
        std::min(due.kill, nanoseconds(kill_at_ns_) - nanoseconds(now_ns()));
    if (until_kill.count() <= 0) {
      has_killed_rest_ = true;
      all(0).kill(0);
      pause = std::min(2 * pause, looks_each);
    }
    const timespec at_most =
        timespec_of(until_kill.count() > 0 ? std::min(until_kill, looks_each) : pause);
    sigtimedwait(&child, nullptr, &at_most);
  }
}

void deadline_watch::set_timer(nanoseconds from_now) {
  if (!has_timer_) return;
  const itimerspec once{.it_interval = {}, .it_value = timespec_of(from_now)};
  timer_settime(timer_, 0, &once, nullptr);
}

void deadline_watch::stop_until_due(const std::function<void()>& stop) const {
  if (due_().term == never) return stop();
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
  for (nanoseconds left = due_().term; left.count() > 0; left = due_().term) {
    const timespec until_due = timespec_of(left);
    clock_nanosleep(CLOCK_BOOTTIME, 0, &until_due, nullptr);
  }
  kill(run, SIGCONT);
  _exit(0);
}

}  // namespace lockflight::cli
