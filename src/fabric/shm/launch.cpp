// Starts ranks, watches them, and ends them all when a rank dies that the run cannot lose.
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

#include "base/descriptor.hpp"
#include "segment.hpp"
#include "waiting.hpp"

namespace lockflight::shm {
namespace {

constexpr int exit_threw = 70;  // of a rank whose body threw; the message is in the control block
constexpr int exit_finished = 71;  // of a rank whose body returned; any code may exit with 0
constexpr int watch_period_ms = 100;

/// The arguments with which a rank starts.
struct start {
  const config& what;
  const detail::segment& segment;
  wait_policy waiting;
  bool fenced_stores;  ///< membarrier is refused
  bool crowded;        ///< there are more ranks than cores
  std::vector<int> processor_of_rank;
};

void bind_to(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  // The result is ignored: a rank that may not be bound runs all the same.
  static_cast<void>(sched_setaffinity(0, sizeof set, &set));
}

/// Runs the body of one rank. True if it returned normally.
bool run_rank(const start& s, rma::rank_t rank, const std::function<void(port&)>& body) {
  detail::control& shared = *s.segment.view().shared;
  try {
    if (s.what.pin) bind_to(s.processor_of_rank[static_cast<std::size_t>(rank)]);
    port p(rank, s.what.machine, s.segment.view(), s.waiting, s.crowded);
    body(p);
    return true;
  } catch (const run_aborted&) {
    return false;
  } catch (const rma::rank_needed& e) {
    shared.report(e.rank, e.what());
  } catch (const std::exception& e) {
    shared.report(rank, std::string("failed: ") + e.what());
  } catch (...) {
    shared.report(rank, "failed: an exception of unknown type");
  }
  return false;
}

// `aborted` says that the report is complete.
void throw_if_reported(const detail::control& shared) {
  if (shared.aborted.load() != 0 && shared.failed_rank >= 0)
    throw rank_failed(shared.failed_rank, shared.failure.data());
}

void run_threads(const start& s, const std::function<void(port&)>& body, const monitor& watch) {
  const int ranks = s.what.machine.ranks();
  detail::control& shared = *s.segment.view().shared;
  std::atomic<int> running{ranks};
  std::vector<std::jthread> threads;
  threads.reserve(static_cast<std::size_t>(ranks));
  try {
    for (rma::rank_t r = 0; r < ranks; ++r)
      threads.emplace_back([&, r] {
        run_rank(s, r, body);
        running.fetch_sub(1);
      });
    while (watch && running.load() > 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(watch_period_ms));
      watch();
    }
  } catch (...) {
    shared.aborted.store(1);  // else the join would wait for ranks that wait for ever
    throw;
  }
  threads.clear();  // joins
  throw_if_reported(shared);
}

/// True if the others go on when this rank's process has ended in this way. They do only if another
/// process has killed it: a rank that crashes may have written anywhere before.
bool is_borne(const config& what, rma::rank_t rank, int status) {
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && rank != 0 && what.bears_loss_of &&
         what.bears_loss_of(rank);
}

/// True if the barriers of the other ranks reach this process, if they rely on them.
bool is_reached_by_others(const start& s, rma::rank_t rank) {
  if (s.fenced_stores || detail::register_membarrier()) return true;
  s.segment.view().shared->report(rank, detail::refused("membarrier", errno));
  return false;
}

/// While an object of this class exists, an ended child of this process can be waited for and its
/// status read. If the caller ignores SIGCHLD, or has set SA_NOCLDWAIT, the kernel would throw the
/// status away. Runs may overlap in several threads; the last one restores the caller's
/// disposition.
class waitable_children {
 public:
  waitable_children() {
    const std::lock_guard hold(mutex_);
    if (runs_++ != 0) return;
    sigaction(SIGCHLD, nullptr, &callers_);
    throws_away_ = callers_.sa_handler == SIG_IGN || (callers_.sa_flags & SA_NOCLDWAIT) != 0;
    if (!throws_away_) return;
    struct sigaction ours = callers_;
    ours.sa_flags &= ~SA_NOCLDWAIT;
    if (callers_.sa_handler == SIG_IGN) ours.sa_handler = SIG_DFL;
    sigaction(SIGCHLD, &ours, nullptr);
  }
  waitable_children(const waitable_children&) = delete;
  waitable_children& operator=(const waitable_children&) = delete;
  ~waitable_children() {
    const std::lock_guard hold(mutex_);
    if (--runs_ != 0) return;
    restore();
    // The caller's own children that have ended meanwhile: their status is thrown away too.
    if (throws_away_)
      while (waitpid(-1, nullptr, WNOHANG) > 0) continue;
  }

  /// For a rank, a child that was just forked: it has the caller's disposition, and no run yet.
  static void leave_to_rank() {
    restore();
    runs_ = 0;
  }

 private:
  static void restore() {
    if (throws_away_) sigaction(SIGCHLD, &callers_, nullptr);
  }

  static inline std::mutex mutex_;
  static inline int runs_ = 0;
  // The caller's disposition, and whether it throws statuses away. Valid while there are runs.
  static inline struct sigaction callers_ {};
  static inline bool throws_away_ = false;
};

/// Waits for a child that has ended or is about to. Returns its status.
int status_of(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return status;
}

/// The processes of a run. None of them outlives this object.
class children {
 public:
  ~children() { end_all(); }

  void spawn(const start& s, rma::rank_t rank, const std::function<void(port&)>& body) {
    const pid_t parent = getpid();
    std::fflush(nullptr);  // else the child would print our buffers again
    const pid_t pid = fork();
    if (pid < 0) throw std::system_error(errno, std::generic_category(), "fork");
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) _exit(exit_threw);  // the parent died before we were tied to it
      waitable_children::leave_to_rank();
      const bool fine = is_reached_by_others(s, rank) && run_rank(s, rank, body);
      std::fflush(nullptr);
      _exit(fine ? exit_finished : exit_threw);
    }
    // The call is made by its number: glibc 2.36 declares pidfd_open without C linkage.
    const int fd = above_standard(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
    if (fd < 0) {
      const int error = errno;
      kill(pid, SIGKILL);
      static_cast<void>(status_of(pid));
      throw std::system_error(error, std::generic_category(), "pidfd_open");
    }
    all_.push_back({pid, rank});
    fds_.push_back({.fd = fd, .events = POLLIN, .revents = 0});
  }

  /// Returns when all ranks have exited normally or are lost; throws as soon as one has ended
  /// otherwise.
  void wait_for_all(const start& s, const monitor& watch) {
    while (!all_.empty()) {
      const int ready = poll(fds_.data(), fds_.size(), watch_period_ms);
      if (ready < 0 && errno != EINTR)
        throw std::system_error(errno, std::generic_category(), "poll");
      if (watch) watch();
      for (std::size_t i = all_.size(); i-- > 0;)
        if (fds_[i].revents != 0) reap(i, s);
    }
  }

 private:
  struct child {
    pid_t pid;
    rma::rank_t rank;
  };

  void reap(std::size_t i, const start& s) {
    const child gone = all_[i];
    const int status = status_of(gone.pid);
    forget(i);
    if (WIFEXITED(status) && WEXITSTATUS(status) == exit_finished) return;
    const detail::control& shared = *s.segment.view().shared;
    throw_if_reported(shared);
    // A rank that dies while it reports would leave other failing ranks waiting for the end of its
    // report.
    if (shared.reporting.load() == 0 && is_borne(s.what, gone.rank, status))
      return s.segment.lose(gone.rank);
    const std::string who = "(pid " + std::to_string(gone.pid) + ") ";
    if (WIFSIGNALED(status))
      throw rank_failed(gone.rank, who + "was killed by signal " +
                                       std::to_string(WTERMSIG(status)) + " (" +
                                       strsignal(WTERMSIG(status)) + ")");
    throw rank_failed(gone.rank, who + "exited with status " + std::to_string(WEXITSTATUS(status)));
  }

  void forget(std::size_t i) {
    close(fds_[i].fd);
    fds_.erase(fds_.begin() + static_cast<std::ptrdiff_t>(i));
    all_.erase(all_.begin() + static_cast<std::ptrdiff_t>(i));
  }

  void end_all() {
    for (const child& c : all_) kill(c.pid, SIGKILL);
    while (!all_.empty()) {
      static_cast<void>(status_of(all_.back().pid));
      forget(all_.size() - 1);
    }
  }

  std::vector<child> all_;
  std::vector<pollfd> fds_;
};

void run_processes(const start& s, const std::function<void(port&)>& body, const monitor& watch) {
  const waitable_children while_ranks_run;
  children ranks;
  for (rma::rank_t r = 0; r < s.what.machine.ranks(); ++r) ranks.spawn(s, r, body);
  ranks.wait_for_all(s, watch);
}

}  // namespace

std::vector<rma::rank_t> run_ports(const config& what, const std::function<void(port&)>& body,
                                   const monitor& watch) {
  const int ranks = what.machine.ranks();
  if (ranks > most_ranks)
    throw std::invalid_argument(std::to_string(ranks) + " ranks (accepted: 1 to " +
                                std::to_string(most_ranks) + " on shm)");
  if (what.words_per_rank > detail::most_words)
    throw std::invalid_argument(std::to_string(what.words_per_rank) +
                                " words per rank (accepted: up to " +
                                std::to_string(detail::most_words) + " on shm)");
  hardware found = discover(ranks);
  const int cores = what.processors > 0 ? what.processors : found.processors;
  const detail::segment segment(ranks, what.words_per_rank);
  // The barrier is tried at once: registering for it may be allowed alone.
  const bool fenced_stores = !detail::register_membarrier() || !detail::membarrier();
  if (fenced_stores) detail::begin_with_fenced_stores(segment.view(), ranks);
  detail::control& shared = *segment.view().shared;
  shared.may_lose = what.bears_loss_of && !what.threads;
  const start s{what,          segment,       wait_policy::parse(what.waiting, ranks, cores),
                fenced_stores, ranks > cores, std::move(found.processor_of_rank)};
  if (what.threads)
    run_threads(s, body, watch);
  else
    run_processes(s, body, watch);
  return {shared.lost.begin(), shared.lost.begin() + shared.losses.load()};
}

}  // namespace lockflight::shm
