#include "cli/run_signals.hpp"

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <ctime>

#include "base/ignored_signal.hpp"

namespace lockflight::cli {
namespace {

volatile sig_atomic_t notes_signals = 0;
volatile sig_atomic_t noted_signal = 0;
volatile sig_atomic_t has_timer = 0;
int timer = 0;  // the kernel's number of it, if there is one
int ends_by = 0;

/// Calls the system and nothing else, so a handler may call it.
[[noreturn]] void end_now(int signal_number) {
  // A core file of this program would be of no use, and may take the place of the command's.
  prctl(PR_SET_DUMPABLE, 0);
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  sigaction(signal_number, &action, nullptr);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, signal_number);
  sigprocmask(SIG_UNBLOCK, &only, nullptr);
  kill(getpid(), signal_number);
  _exit(128 + signal_number);  // process 1 of a container is not ended by it
}

/// A signal that arrives just before a wait begins does not disturb that wait. So after the first
/// one a SIGCHLD comes every 10 ms, until its reader has seen it. The system calls themselves,
/// since a handler calls this.
void disturb_waits() {
  if (has_timer != 0) return;
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGCHLD;
  constexpr itimerspec often{{0, 10'000'000}, {0, 10'000'000}};
  if (syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &timer) != 0) return;
  has_timer = 1;
  syscall(SYS_timer_settime, timer, 0, &often, nullptr);
}

void disturb_no_more() {
  if (has_timer == 0) return;
  syscall(SYS_timer_delete, timer);
  has_timer = 0;
}

void on_signal(int signal_number) {
  const int error = errno;
  if (notes_signals == 0) end_now(signal_number);
  if (noted_signal == 0 || noted_signal == SIGTSTP) noted_signal = signal_number;
  disturb_waits();
  errno = error;
}

/// A stop that was noted, and that the sender has taken back before we have stopped.
void on_continue(int) {
  if (noted_signal == SIGTSTP) noted_signal = 0;
}

/// True if a SIGCONT, which is blocked, has come: it takes back a stop that has not happened yet,
/// and a stop signal that we send ourselves would drop it.
bool is_continued() {
  sigset_t pending;
  sigpending(&pending);
  return sigismember(&pending, SIGCONT) != 0;
}

/// A handler that only interrupts system calls.
void on_child(int) {}

void handle(int signal_number, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigfillset(&action.sa_mask);
  sigaction(signal_number, &action, nullptr);
}

}  // namespace

run_signals::run_signals() : stops_(!is_ignored(SIGTSTP)) {
  sigemptyset(&blocked_);
  sigemptyset(&ignored_);
  for (const int each : ending_signals) {
    if (is_ignored(each))
      sigaddset(&ignored_, each);
    else
      handle(each, on_signal);
    sigaddset(&blocked_, each);
  }
  // If SIGCHLD stayed ignored, as our parent may have set it, the system would not report how the
  // command ended.
  handle(SIGCHLD, on_child);
  for (const int each : {SIGCHLD, SIGTSTP, SIGCONT}) sigaddset(&blocked_, each);
  sigprocmask(SIG_BLOCK, nullptr, &before_);
}

void run_signals::let_end() {
  // First: a Ctrl-Z from here on stops us, and is not lost in a handler that notes nothing.
  if (stops_) handle(SIGTSTP, SIG_DFL);
  notes_signals = 0;
  disturb_no_more();
  sigprocmask(SIG_SETMASK, &before_, nullptr);
}

void run_signals::note() {
  noted_signal = 0;
  notes_signals = 1;
  handle(SIGCONT, on_continue);
  if (stops_) handle(SIGTSTP, on_signal);
}

void run_signals::block() {
  sigprocmask(SIG_BLOCK, &blocked_, nullptr);
  disturb_no_more();
  if (noted_signal == SIGTSTP) {
    noted_signal = 0;
    if (!is_continued()) kill(getpid(), SIGTSTP);
  }
}

int run_signals::noted() { return noted_signal; }

int run_signals::pending() const {
  sigset_t come;
  sigpending(&come);
  for (const int each : ending_signals)
    if (sigismember(&come, each) == 1 && sigismember(&before_, each) == 0) return each;
  return 0;
}

void run_signals::stop_here(bool if_noted) {
  if (!stops_) return;
  sigset_t both;
  sigset_t mask;
  sigemptyset(&both);
  sigaddset(&both, SIGTSTP);
  sigaddset(&both, SIGCONT);
  sigprocmask(SIG_BLOCK, &both, &mask);
  struct sigaction action {};
  sigaction(SIGTSTP, nullptr, &action);
  handle(SIGTSTP, SIG_DFL);
  if ((!if_noted || noted_signal == SIGTSTP) && !is_continued()) kill(getpid(), SIGTSTP);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, SIGTSTP);
  sigprocmask(SIG_UNBLOCK, &only, nullptr);  // here we stop, unless a SIGCONT has come since
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  sigaction(SIGTSTP, &action, nullptr);
}

void run_signals::give_back_in_child() const {
  for (const int each : ending_signals)
    if (sigismember(&ignored_, each) == 0) handle(each, SIG_DFL);
  handle(SIGCHLD, SIG_DFL);
  if (stops_) {
    // A Ctrl-Z since the vfork would stop us here, and our parent waits for us to become the
    // command. It is forgotten.
    handle(SIGTSTP, SIG_IGN);
    handle(SIGTSTP, SIG_DFL);
  }
  sigprocmask(SIG_SETMASK, &before_, nullptr);
}

int end_by(int signal_number) {
  ends_by = signal_number;
  // State of the thread, such as its slot in the domain, is given back before that.
  std::atexit([] { end_now(ends_by); });
  return 128 + signal_number;
}

}  // namespace lockflight::cli
