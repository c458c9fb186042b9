#include "mpi_preload/windows.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <utility>
#include <vector>

#include "mpi_preload/settings.hpp"

namespace lockflight::mpi_preload {
namespace {

// A program has few windows: a search in a list is faster than in a table.
struct list {
  std::shared_mutex guard;
  std::vector<std::pair<MPI_Win, std::unique_ptr<window>>> windows;
};
list& all() {
  static list those;
  return those;
}

// The number of changes of the list, and a thread's last result at that number.
constinit std::atomic<std::uint64_t> changes{1};
struct found {
  MPI_Win win;
  window* is;
  std::uint64_t as_of;
};
// Reached without a call: this library is loaded with the program (preloaded or linked).
[[gnu::tls_model("initial-exec")]] constinit thread_local found last{};

// Windows that the fabric makes for itself come through the same calls.
thread_local bool at_work = false;
class work {
 public:
  work() : before_(std::exchange(at_work, true)) {}
  ~work() { at_work = before_; }
  work(const work&) = delete;
  work& operator=(const work&) = delete;

 private:
  bool before_;
};

/// Whether all ranks have LOCKFLIGHT_MPI_OFF, which each reads for itself. Collective.
[[nodiscard]] bool all_switched_off(MPI_Comm group) {
  int off = environment().off ? 1 : 0;
  PMPI_Allreduce(MPI_IN_PLACE, &off, 1, MPI_INT, MPI_MIN, group);
  return off != 0;
}

/// Why this rank cannot have one more window; empty if it can. Then adding one cannot fail.
[[nodiscard]] std::string why_no_window() {
  if (environment().off) return "LOCKFLIGHT_MPI_OFF is set";
  list& those = all();
  const std::unique_lock change(those.guard);
  try {
    // As many as push_back would make room for.
    if (those.windows.size() == those.windows.capacity())
      those.windows.reserve(2 * those.windows.size() + 1);
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}

}  // namespace

// Every put comes through here: each thread remembers its last result.
window* find(MPI_Win win) {
  const std::uint64_t now = changes.load(std::memory_order_acquire);
  if (last.as_of == now && last.win == win) [[likely]]
    return last.is;

  list& those = all();
  const std::shared_lock look(those.guard);
  const auto at = std::find_if(those.windows.begin(), those.windows.end(),
                               [win](const auto& one) { return one.first == win; });
  last = {win, at == those.windows.end() ? nullptr : at->second.get(), now};
  return last.is;
}

void adopt(MPI_Win win, MPI_Comm group, MPI_Info info) {
  if (at_work) return;
  const work ours;
  if (all_switched_off(group)) return;
  try {
    mpi::agree(why_no_window(), PMPI_Comm_c2f(group));
    auto made = std::make_unique<window>(win, group, scheme_of(info, group));
    list& those = all();
    const std::unique_lock change(those.guard);
    those.windows.emplace_back(win, std::move(made));
    changes.fetch_add(1, std::memory_order_release);
  } catch (const std::exception& e) {
    // All ranks are here, for the same reason.
    int rank = 0;
    PMPI_Comm_rank(group, &rank);
    if (rank == 0)
      std::fprintf(stderr, "lockflight: this window keeps the locks of MPI: %s\n", e.what());
  }
}

void forget(MPI_Win win) {
  std::unique_ptr<window> gone;
  {
    list& those = all();
    const std::unique_lock change(those.guard);
    const auto at = std::find_if(those.windows.begin(), those.windows.end(),
                                 [win](const auto& one) { return one.first == win; });
    if (at == those.windows.end()) return;
    gone = std::move(at->second);
    those.windows.erase(at);
    changes.fetch_add(1, std::memory_order_release);
  }
  const work ours;
  keep_for_the_end(gone->summary());
  gone.reset();
}

void forget_all() {
  list& those = all();
  const std::unique_lock change(those.guard);
  // Freeing is collective, and so is summing up; not even that all have these windows is sure here.
  for (auto& one : those.windows) static_cast<void>(one.second.release());
  those.windows.clear();
  changes.fetch_add(1, std::memory_order_release);
}

}  // namespace lockflight::mpi_preload
