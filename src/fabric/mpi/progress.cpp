#include "fabric/mpi/progress.hpp"

#include <poll.h>
#include <sys/prctl.h>

#include <atomic>
#include <ctime>
#include <filesystem>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "base/thread_without_signals.hpp"
#include "fabric/mpi/trial.hpp"

namespace lockflight::mpi::detail {
namespace {

/// This process's epoll instances, by which libraries below MPI watch their sockets. An epoll
/// instance can itself be polled, and is readable while one of its sockets is.
std::vector<pollfd> epoll_instances() {
  std::vector<pollfd> found;
  std::error_code none;  // without /proc there is nothing to sleep on
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", none)) {
    const std::filesystem::path is = std::filesystem::read_symlink(entry.path(), none);
    if (!none && is == "anon_inode:[eventpoll]")
      found.push_back({.fd = std::stoi(entry.path().filename()), .events = POLLIN, .revents = 0});
  }
  return found;
}

// MPI has no event to sleep on. Over TCP the sockets' events serve. The thread also makes a step
// after each timeout, because there may be no socket, or progress that no socket reports.
void serve_until(const std::atomic<bool>& over) {
  // The kernel may wake a thread later by this much: by default 50 us.
  prctl(PR_SET_TIMERSLACK, 1'000UL);
  // A message that no rank sends, see link::progress: the largest tag that each MPI has.
  constexpr int tag_of_nothing = 32'767;
  // An event that stays must not take a core.
  constexpr timespec rest{0, 20'000};
  std::vector<pollfd> events = epoll_instances();
  const int most_sleep_ms = events.empty() ? 1 : 5;
  while (!over.load(std::memory_order_relaxed)) {  // nothing else is read from its writer
    const int ready = poll(events.data(), events.size(), most_sleep_ms);
    int there = 0;
    PMPI_Iprobe(MPI_ANY_SOURCE, tag_of_nothing, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
    if (ready > 0) nanosleep(&rest, nullptr);
  }
}

bool allows_threads() {
  int level = 0;
  PMPI_Query_thread(&level);
  return level == MPI_THREAD_MULTIPLE;
}

/// The thread of this process, as long as it has an owner.
std::weak_ptr<progress_thread>& present() {
  static std::weak_ptr<progress_thread> of_process;
  return of_process;
}

}  // namespace

struct progress_thread::running {
  std::atomic<bool> over = false;
  std::thread thread = thread_without_signals([this] { serve_until(over); });
};

progress_thread::progress_thread() : running_(std::make_unique<running>()) {}
progress_thread::~progress_thread() {
  running_->over = true;
  running_->thread.join();
}

std::shared_ptr<progress_thread> help_while_computing(const communicator& all, segment& cells) {
  const progress_by wanted = wanted_progress();
  if (wanted == progress_by::calls) return nullptr;
  if (!holds_on_all(all, allows_threads())) {
    if (wanted == progress_by::trial) return nullptr;
    throw unavailable(
        "LOCKFLIGHT_PROGRESS=thread needs MPI_THREAD_MULTIPLE, which this MPI was not initialised "
        "with, or beside which it makes no windows, as Open MPI's osc/pt2pt (accepted: calls, "
        "auto)");
  }
  static bool tried = false;  // together with all others
  static bool answers = false;
  if (wanted == progress_by::trial && !holds_on_all(all, tried)) {
    cells.clear(0, words_of_trials);
    answers = answers_while_computing(all, cells);
    tried = true;
  }
  if (wanted == progress_by::trial && answers) return nullptr;
  std::shared_ptr<progress_thread> mine = present().lock();
  if (mine == nullptr) {
    mine = std::make_shared<progress_thread>();
    present() = mine;
  }
  return mine;
}

}  // namespace lockflight::mpi::detail
