#include "mpi_preload/windows.hpp"

#include <array>
#include <atomic>
#include <cstdio>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "fabric/mpi/calls.hpp"
#include "mpi_preload/settings.hpp"
#include "mpi_preload/window_group.hpp"

namespace lockflight::mpi_preload {
namespace {

using mpi::detail::communicator;

struct list {
  std::shared_mutex guard;
  std::unordered_map<MPI_Win, std::unique_ptr<window>> windows;  // null: being made
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

/// What the ranks of a window have in their environments.
struct wishes {
  bool off = false;  // all of them
  observer::wanted wanted;
};

/// Collective.
[[nodiscard]] wishes wishes_of(const communicator& group) {
  const settings& mine = environment();
  std::array<int, 3> most{mine.off ? 0 : 1, mine.statistics ? 1 : 0, mine.hang_seconds > 0 ? 1 : 0};
  mpi::detail::combine(group, most.data(), static_cast<int>(most.size()), MPI_INT, MPI_MAX);
  return {.off = most[0] == 0, .wanted = {.counts = most[1] != 0, .hangs = most[2] != 0}};
}

/// Makes room for one window more, so that adding it cannot fail on one rank alone. Collective.
void make_room(const communicator& group, MPI_Win win) {
  std::string why = environment().off ? "LOCKFLIGHT_MPI_OFF is set" : "";
  if (why.empty())
    why = fault_in([&] {
      list& those = all();
      const std::unique_lock change(those.guard);
      those.windows.try_emplace(win);
    });
  mpi::detail::agree(group, why);
}

/// Fails on all ranks alike. Collective.
[[nodiscard]] std::unique_ptr<window> made(MPI_Win win, const communicator& group, MPI_Info info,
                                           const wishes& of_all) {
  const auto ranks = join_group(group.get());
  scheme_name scheme;
  window_place at;
  try {
    // Parameters may say where a lock's words lie, so all ranks have those of the first one.
    scheme_message from_first;
    std::string why = fault_in([&] { from_first = scheme_message(wanted_scheme(info, *ranks)); });
    mpi::detail::broadcast(group, &from_first, sizeof from_first, MPI_BYTE);
    std::uint32_t words = 0;
    if (why.empty())
      why = fault_in([&] {
        scheme = from_first.scheme();
        words = window::words(scheme, *ranks);
      });
    mpi::detail::agree(group, why);
    at = place_in(*ranks, group.get(), words);
  } catch (...) {
    forget_join(*ranks);
    throw;
  }
  std::unique_ptr<window> one;
  const std::string why =
      fault_in([&] { one = std::make_unique<window>(win, ranks, at, scheme, of_all.wanted); });
  try {
    mpi::detail::agree(group, why);
  } catch (...) {
    one.reset();
    leave_group(ranks, at);
    throw;
  }
  return one;
}

/// The program's communicator returns errors while this exists: those of MPI's own limits are for
/// the drop-in.
class returning_errors {
 public:
  explicit returning_errors(MPI_Comm of) : of_(of) {
    PMPI_Comm_get_errhandler(of_, &before_);
    PMPI_Comm_set_errhandler(of_, MPI_ERRORS_RETURN);
  }
  ~returning_errors() {
    PMPI_Comm_set_errhandler(of_, before_);
    PMPI_Errhandler_free(&before_);
  }
  returning_errors(const returning_errors&) = delete;
  returning_errors& operator=(const returning_errors&) = delete;

 private:
  MPI_Comm of_;
  MPI_Errhandler before_ = MPI_ERRHANDLER_NULL;
};

/// All ranks are here, for the same reason. One of MPI's limits is said once: the windows to come
/// will hardly fare better.
void say(const communicator& group, const std::exception& why) {
  const bool is_limit = dynamic_cast<const limit_reached*>(&why) != nullptr;
  static std::atomic<bool> said = false;
  if (is_limit && said.exchange(true)) return;
  if (group.rank() != 0) return;
  std::fprintf(stderr, "lockflight: this window %skeeps the locks of MPI: %s\n",
               is_limit ? "and perhaps others to come " : "", why.what());
}

}  // namespace

// Every put comes through here: each thread remembers its last result.
window* find(MPI_Win win) {
  const std::uint64_t now = changes.load(std::memory_order_acquire);
  if (last.as_of == now && last.win == win) [[likely]]
    return last.is;

  list& those = all();
  const std::shared_lock look(those.guard);
  const auto at = those.windows.find(win);
  last = {win, at == those.windows.end() ? nullptr : at->second.get(), now};
  return last.is;
}

void adopt(MPI_Win win, MPI_Comm whole, MPI_Info info) {
  if (at_work) return;
  const work ours;
  const returning_errors meanwhile(whole);
  const communicator group = communicator::borrowed(whole);
  const wishes of_all = wishes_of(group);
  if (of_all.off) return;
  list& those = all();
  try {
    make_room(group, win);
    auto one = made(win, group, info, of_all);
    const std::unique_lock change(those.guard);
    those.windows.at(win) = std::move(one);
    changes.fetch_add(1, std::memory_order_release);
  } catch (const std::exception& why) {
    const std::unique_lock change(those.guard);
    those.windows.erase(win);
    say(group, why);
  }
}

void forget(MPI_Win win) {
  std::unique_ptr<window> gone;
  {
    list& those = all();
    const std::unique_lock change(those.guard);
    const auto at = those.windows.find(win);
    if (at == those.windows.end()) return;
    gone = std::move(at->second);
    those.windows.erase(at);
    changes.fetch_add(1, std::memory_order_release);
  }
  const work ours;
  keep_for_the_end(gone->summary());
  gone->end();
}

void forget_all() {
  {
    list& those = all();
    const std::unique_lock change(those.guard);
    // Freeing is collective, and so is summing up; not even that all have these windows is sure
    // here.
    for (auto& one : those.windows) static_cast<void>(one.second.release());
    those.windows.clear();
    changes.fetch_add(1, std::memory_order_release);
  }
  const work ours;
  end_idle_groups();
}

}  // namespace lockflight::mpi_preload
