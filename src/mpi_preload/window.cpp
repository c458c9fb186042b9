#include "mpi_preload/window.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "lockflight/rma/assert.hpp"
#include "mpi_preload/pmpi.hpp"
#include "mpi_preload/settings.hpp"
#include "mpi_preload/yields.hpp"

namespace lockflight::mpi_preload {
namespace {

// With MPI_THREAD_MULTIPLE the threads of a process share its side of a window. One thread is in
// here at a time. A waiting thread lets the others in between two reads, and the port has nothing
// pending then (C9).
class gate {
 public:
  void enter() {
    outside_.fetch_add(1, std::memory_order_relaxed);
    inside_.lock();
    outside_.fetch_sub(1, std::memory_order_relaxed);
    entered_.fetch_add(1, std::memory_order_relaxed);
  }
  void leave() { inside_.unlock(); }

  // A waiting thread leaves only if another wants to enter, and comes back after that one has
  // entered. With a mutex alone the waiting thread would have it again long before the woken one,
  // which may bring what it waits for.
  void let_others_in() {
    if (outside_.load(std::memory_order_relaxed) == 0) return;
    const unsigned before = entered_.load(std::memory_order_relaxed);
    leave();
    while (outside_.load(std::memory_order_relaxed) != 0 &&
           entered_.load(std::memory_order_relaxed) == before)
      sched_yield();
    enter();
  }

 private:
  std::mutex inside_;
  std::atomic<int> outside_{0};  // at the mutex
  std::atomic<unsigned> entered_{0};
};

gate one_at_a_time;

// Asked when the first window is made; it is not needed before.
[[nodiscard]] bool many_threads() {
  static const bool many = [] {
    int level = MPI_THREAD_SINGLE;
    PMPI_Query_thread(&level);
    return level == MPI_THREAD_MULTIPLE;
  }();
  return many;
}

class [[nodiscard]] entry {
 public:
  entry() {
    if (many_threads()) one_at_a_time.enter();
  }
  ~entry() {
    if (many_threads()) one_at_a_time.leave();
  }
  entry(const entry&) = delete;
  entry& operator=(const entry&) = delete;
};

[[nodiscard]] answer by_mpi(int code) { return {.code = code, .told = code != MPI_SUCCESS}; }

/// A call of MPI's that may wait for a lock: the other threads may hold what it waits for.
template <class Call>
[[nodiscard]] answer waiting_in_mpi(Call call) {
  if (!many_threads()) return by_mpi(call());
  one_at_a_time.leave();
  const answer found = by_mpi(call());
  one_at_a_time.enter();
  return found;
}

[[nodiscard]] std::string name_of(MPI_Win win) {
  char name[MPI_MAX_OBJECT_NAME] = {};
  int length = 0;
  PMPI_Win_get_name(win, name, &length);
  return length > 0 ? fmt::format("'{}'", std::string_view(name, static_cast<std::size_t>(length)))
                    : "without a name";
}

}  // namespace

std::uint32_t window::words(const scheme_name& scheme, const window_group& group) {
  const std::uint32_t sum = memory_of(scheme, group.machine()).words + words_of_observers;
  return (sum + rma::line_words - 1) / rma::line_words * rma::line_words;
}

window::window(MPI_Win of, std::shared_ptr<window_group> group, const window_place& at,
               const scheme_name& scheme, observation wanted)
    : win_(of),
      group_(std::move(group)),
      at_(at),
      scheme_(scheme),
      me_(group_->port_of(at), rma::layout(at.first, at.first + at.words)),
      locks_(make_scheme(scheme, me_)),
      held_(static_cast<std::size_t>(me_.machine().ranks())),
      begun_(held_.size()),
      by_mpi_(scheme.lock_all == way_of_mpi),
      counts_(wanted.counts),
      observed_(wanted.counts || wanted.hangs) {
  holder_ = me_.cells().take<rma::plain_cell>(1);
  last_ = me_.cells().take<rma::plain_cell>(1);
  counted_.handoffs.resize(static_cast<std::size_t>(me_.machine().levels()));
  if (counts_) counted_.waited_for.resize(held_.size());
  // Of the port, which other windows use too.
  static const std::function<void()> hook = while_waiting;
  if (many_threads() || observed_) me_.port().while_waiting(hook);
}

// What of the window's locks uses the group's memory ends before the others learn that it has.
void window::end() {
  static_cast<void>(make_way_for_active_target());
  locks_.reset();
  me_.port().flush();
  leave_group(group_, at_);
}

void window::while_waiting() {
  if (waiting_ != nullptr) waiting_->in->tell_if_it_hangs();
  if (many_threads()) one_at_a_time.let_others_in();
}

// ---- MPI's calls ----

answer window::open() {
  if (open_) [[likely]]
    return {};
  const answer opened = by_mpi(pmpi().Win_lock_all(MPI_MODE_NOCHECK, win_));
  open_ = opened.code == MPI_SUCCESS;
  a_lock_comes();
  return opened;
}

// The record of begun operations is cleared before the flush: operations that another thread begins
// meanwhile are recorded again.

int window::flush(int target) {
  if (target < 0 || static_cast<std::size_t>(target) >= held_.size())
    return pmpi().Win_flush(target, win_);
  const auto t = static_cast<std::size_t>(target);
  begun_[t].store(false, std::memory_order_relaxed);
  // A process that shares the target, or has locked all, may poll for others' writes: it yields.
  if (held_[t] != epoch::exclusive) return pmpi().Win_flush(target, win_);
  const keeping_the_processor meanwhile;
  return pmpi().Win_flush(target, win_);
}

int window::flush_all() {
  begun_anywhere_.store(false, std::memory_order_relaxed);
  return pmpi().Win_flush_all(win_);
}

// Without operations to complete, what remains of an unlock's promises is that the epoch's own
// loads and stores on the window's memory come before it (MPI-3.1, section 11.7).
answer window::complete(int target) {
  std::atomic<bool>& begun = begun_[static_cast<std::size_t>(target)];
  if (begun.load(std::memory_order_relaxed)) {
    begun.store(false, std::memory_order_relaxed);
    const keeping_the_processor meanwhile;
    return by_mpi(pmpi().Win_flush(target, win_));
  }
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return {};
}

answer window::complete_all() {
  if (begun_anywhere_.load(std::memory_order_relaxed)) {
    begun_anywhere_.store(false, std::memory_order_relaxed);
    const keeping_the_processor meanwhile;
    return by_mpi(pmpi().Win_flush_all(win_));
  }
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return {};
}

answer window::make_way_for_active_target() {
  const entry in;
  if (!open_ || targets_held_ > 0 || all_ != epoch::none) return {};
  open_ = false;
  return by_mpi(pmpi().Win_unlock_all(win_));
}

// MPI's epoch first: if it refuses (a fence or PSCW epoch is open), nothing was taken.
answer window::lock(int type, int target, int assertion) {
  const entry in;
  if (type != MPI_LOCK_EXCLUSIVE && type != MPI_LOCK_SHARED) return {.code = MPI_ERR_LOCKTYPE};
  if (target == MPI_PROC_NULL) return {};
  if (target < 0 || static_cast<std::size_t>(target) >= held_.size()) return {.code = MPI_ERR_RANK};
  epoch& here = held_[static_cast<std::size_t>(target)];
  if (here != epoch::none || all_ != epoch::none) return {.code = MPI_ERR_RMA_SYNC};
  if (by_mpi_) return lock_by_mpi(type, target, assertion);
  const answer opened = open();
  if (opened.code != MPI_SUCCESS) return opened;
  const bool exclusive = type == MPI_LOCK_EXCLUSIVE;
  // Before the wait: another thread of ours that comes for this target makes a mistake.
  here = exclusive ? epoch::exclusive : epoch::shared;
  ++targets_held_;
  try {
    if ((assertion & MPI_MODE_NOCHECK) != 0)
      here = epoch::unchecked;
    else if (exclusive)
      acquire(lock_kind::exclusive, target, [&] { locks_->lock(target); });
    else
      acquire(lock_kind::shared, target, [&] { locks_->lock_shared(target); });
  } catch (const std::length_error&) {
    // A lock with queues, and all queue nodes of this process are in use
    // (participant::most_nested).
    here = epoch::none;
    --targets_held_;
    waiting_ = nullptr;
    return {.code = MPI_ERR_NO_MEM};
  }
  return {};
}

// The epoch's operations are complete at the target before another process can enter.
answer window::unlock(int target) {
  const entry in;
  if (target == MPI_PROC_NULL) return {};
  if (target < 0 || static_cast<std::size_t>(target) >= held_.size()) return {.code = MPI_ERR_RANK};
  epoch& here = held_[static_cast<std::size_t>(target)];
  if (here == epoch::none) return {.code = MPI_ERR_RMA_SYNC};
  if (by_mpi_) return unlock_by_mpi(target);
  const answer completed = complete(target);
  switch (here) {
    case epoch::exclusive:
      released(lock_kind::exclusive, target);
      locks_->unlock(target);
      break;
    case epoch::shared:
      locks_->unlock_shared(target);
      break;
    default:
      break;
  }
  // Not before: a release may wait, and let other threads in.
  rma::ensure(targets_held_ > 0, "a target that is unlocked is counted");
  here = epoch::none;
  --targets_held_;
  return completed;
}

answer window::lock_all(int assertion) {
  const entry in;
  if (all_ != epoch::none || targets_held_ > 0) return {.code = MPI_ERR_RMA_SYNC};
  if (by_mpi_) return lock_all_by_mpi(assertion);
  const answer opened = open();
  if (opened.code != MPI_SUCCESS) return opened;
  all_ = epoch::shared;
  if ((assertion & MPI_MODE_NOCHECK) != 0)
    all_ = epoch::unchecked;
  else
    acquire(lock_kind::all, -1, [&] { locks_->lock_all(); });
  return {};
}

answer window::unlock_all() {
  const entry in;
  if (all_ == epoch::none) return {.code = MPI_ERR_RMA_SYNC};
  if (by_mpi_) return unlock_all_by_mpi();
  const answer completed = complete_all();
  if (all_ == epoch::shared) locks_->unlock_all();
  all_ = epoch::none;  // not before, as in unlock
  return completed;
}

// ---- where the locks are MPI's own ----

// A queue pays where the same process comes again at once, against others that do so too. Locks
// spread over targets meet few others, and would pay its round trip for nothing; one other rank
// alone makes no crowd. Open MPI's targets keep a queue themselves.
bool window::comes_again_for(int target) {
#if defined(OPEN_MPI)
  constexpr bool has_queue = true;
#else
  constexpr bool has_queue = false;
#endif
  constexpr int often = 3;
  constexpr std::size_t crowd = 3;
  if (target != last_target_) times_in_a_row_ = 0;
  last_target_ = target;
  if (times_in_a_row_ <= often) ++times_in_a_row_;
  return !has_queue && times_in_a_row_ > often && held_.size() >= crowd;
}

// Exclusion does not rest on the queue: who is at its head still takes MPI's lock, as do those that
// never queue.
answer window::lock_by_mpi(int type, int target, int assertion) {
  epoch& here = held_[static_cast<std::size_t>(target)];
  const bool exclusive = type == MPI_LOCK_EXCLUSIVE;
  const bool queues = exclusive && (assertion & MPI_MODE_NOCHECK) == 0 && comes_again_for(target);
  if (!exclusive) last_target_ = -1;
  // MPICH 4.0 counts the unlock of a lock that was not checked, which it had not counted as a lock:
  // the target is never free again. MPI_MODE_NOCHECK only allows not to check.
  const int checked = assertion & ~MPI_MODE_NOCHECK;
  here = queues ? epoch::queued : exclusive ? epoch::exclusive : epoch::shared;
  ++targets_held_;
  answer locked;
  try {
    acquire(exclusive ? lock_kind::exclusive : lock_kind::shared, target, [&] {
      if (queues) locks_->lock(target);
      locked = waiting_in_mpi([&] { return pmpi().Win_lock(type, target, checked, win_); });
    });
  } catch (const std::length_error&) {
    waiting_ = nullptr;
    locked = {.code = MPI_ERR_NO_MEM};
  }
  if (locked.code == MPI_SUCCESS) return locked;
  if (queues && locked.told) locks_->unlock(target);
  here = epoch::none;
  --targets_held_;
  return locked;
}

// MPI's lock is released first, so that the next of the queue finds it free.
answer window::unlock_by_mpi(int target) {
  epoch& here = held_[static_cast<std::size_t>(target)];
  const answer unlocked = waiting_in_mpi([&] { return pmpi().Win_unlock(target, win_); });
  if (here == epoch::queued) locks_->unlock(target);
  here = epoch::none;
  --targets_held_;
  return unlocked;
}

answer window::lock_all_by_mpi(int assertion) {
  answer locked;
  all_ = epoch::shared;  // another thread of ours that comes meanwhile makes a mistake
  acquire(lock_kind::all, -1,
          [&] { locked = waiting_in_mpi([&] { return pmpi().Win_lock_all(assertion, win_); }); });
  if (locked.code != MPI_SUCCESS) all_ = epoch::none;
  return locked;
}

answer window::unlock_all_by_mpi() {
  const answer unlocked = waiting_in_mpi([&] { return pmpi().Win_unlock_all(win_); });
  all_ = epoch::none;
  return unlocked;
}

// ---- waits, and the holders that they wait for ----

// One for each thread: several threads of a process may wait in one window, and leave in any order.
thread_local window::wait* window::waiting_ = nullptr;

template <class Acquire>
void window::acquire(lock_kind kind, int target, Acquire how) {
  if (!observed_) return how();
  note_holder(kind, target);
  wait now{.kind = kind, .target = target, .since = PMPI_Wtime(), .in = this};
  waiting_ = &now;
  how();
  waiting_ = nullptr;
  const double waited = PMPI_Wtime() - now.since;
  const auto k = static_cast<std::size_t>(kind);
  ++counted_.locks[k];
  counted_.waited_s[k] += waited;
  counted_.longest_wait_s = std::max(counted_.longest_wait_s, waited);
  // MPI may lock later than its call returns, so who holds is not known.
  if (kind != lock_kind::exclusive || by_mpi_) return;
  const rma::word last = rma::get_now(me_.port(), last_.at(target));
  if (last != 0 && static_cast<int>(last) - 1 != me_.rank())
    ++counted_.handoffs[static_cast<std::size_t>(
        me_.machine().common_level(static_cast<rma::rank_t>(last) - 1, me_.rank()) - 1)];
  rma::put_now(me_.port(), holder_.at(target), static_cast<rma::word>(me_.rank()) + 1);
}

void window::released(lock_kind kind, int target) {
  if (!observed_ || kind != lock_kind::exclusive) return;
  me_.port().put(holder_.at(target), 0);
  me_.port().put(last_.at(target), static_cast<rma::word>(me_.rank()) + 1);
  me_.port().flush(target);
}

void window::note_holder(lock_kind kind, int target) {
  if (kind == lock_kind::all || !counts_ || by_mpi_) return;
  const rma::word holder = rma::get_now(me_.port(), holder_.at(target));
  if (holder != 0) ++counted_.waited_for[static_cast<std::size_t>(holder - 1)];
}

void window::tell_if_it_hangs() {
  const double limit = environment().hang_seconds;
  if (limit <= 0 || waiting_ == nullptr || waiting_->told) return;
  const double waited = PMPI_Wtime() - waiting_->since;
  if (waited < limit) return;
  waiting_->told = true;
  const wait what = *waiting_;
  const std::string who = waits_for(what);
  const std::string on = what.target >= 0 ? "target " + std::to_string(what.target) : "all targets";
  std::fprintf(
      stderr, "lockflight: rank %d has waited %.0f s for a%s lock on %s of the window %s, for %s\n",
      me_.rank(), waited, what.kind == lock_kind::exclusive ? "n exclusive" : " shared", on.c_str(),
      name_of(win_).c_str(), who.c_str());
}

// On another node's target this takes a round trip; the caller is waiting anyway.
std::string window::who_holds(int target) {
  const rma::word holder = rma::get_now(me_.port(), holder_.at(target));
  return holder != 0 ? "rank " + std::to_string(holder - 1) : "";
}

std::string window::waits_for(const wait& what) {
  if (what.target >= 0)
    if (const std::string who = who_holds(what.target); !who.empty())
      return who + ", which holds it exclusively";
  // lock_all waits for the holder of any target; where the window has one lock, so does an
  // exclusive lock.
  const bool for_any =
      what.target < 0 || (what.kind == lock_kind::exclusive && scheme_.lock_all == "global");
  if (for_any)
    for (std::size_t t = 0; t < held_.size(); ++t)
      if (const std::string who = who_holds(static_cast<int>(t)); !who.empty())
        return who + ", which holds target " + std::to_string(t);
  return what.target >= 0 ? "the ranks that share it or have locked all" : "an unknown rank";
}

std::string window::summary() const {
  return counts_ ? tell(counted_, name_of(win_), scheme_, *group_, at_.tag) : "";
}

}  // namespace lockflight::mpi_preload
