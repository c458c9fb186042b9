#include "mpi_preload/window.hpp"

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <utility>

#include "lockflight/rma/assert.hpp"
#include "mpi_preload/bindings.hpp"
#include "mpi_preload/pmpi.hpp"
#include "mpi_preload/probes.hpp"
#include "mpi_preload/threads.hpp"
#include "mpi_preload/yields.hpp"

namespace lockflight::mpi_preload {

namespace {

// The error class that the MPI returns for an assertion that a lock does not have.
#if defined(OPEN_MPI)
constexpr int class_of_bad_assertion = MPI_ERR_ASSERT;
#else
constexpr int class_of_bad_assertion = MPI_ERR_ARG;
#endif

}  // namespace

void delete_window::operator()(window* one) const { delete one; }

window::window(MPI_Win of, const window_grant& grant, const observation& what, bool is_usual)
    : win_(of),
      grant_(grant),
      scheme_(grant.scheme.scheme()),
      me_(grant.group->port_of(grant.at),
          rma::layout(grant.at.first, grant.at.first + grant.at.words - words_of_meeting)),
      locks_(make_scheme(scheme_, me_)),
      held_(static_cast<std::size_t>(me_.machine().ranks())),
      begun_(held_.size()),
      is_usual_(is_usual),
      by_mpi_(scheme_.lock_all == way_of_mpi),
      is_quick_(!by_mpi_ && !what.counts && !what.hangs),
      observer_(of, me_, scheme_, what) {
  // Of the port, which other windows use too.
  static const std::function<void()> hook = while_waiting;
  if (many_threads() || observer_.observes()) me_.port().while_waiting(hook);
}

void window::about_to_be_freed() {
  static_cast<void>(end_unused_epoch());
  observer_.note_name();
  me_.port().flush();
}

void window::end() {
  can_be_used_again_ = grant_.group->meets_in_memory() && !observer_.observes() && !open_ &&
                       targets_held_ == 0 && all_ == epoch::none;
  if (!can_be_used_again_) locks_.reset();
}

void window::use_again(MPI_Win by) {
  win_ = by;
  last_target_ = -1;
  times_in_a_row_ = 0;
}

void window::while_waiting() {
  observer::tell_if_this_thread_hangs();
  let_others_in();
}

// ---- MPI's calls ----

namespace {

/// A call of MPI's that may wait for its target: other threads of this process go on meanwhile,
/// since the target may wait for one of them.
template <class Call>
[[nodiscard]] answer waiting_for_mpi(Call call) {
  const outside meanwhile;
  const keeping_the_processor from_here;
  return answer::of_mpi(call());
}

}  // namespace

// While MPI opens or closes the epoch another thread may come for it, and waits.
template <class Call>
answer window::change_epoch(bool to_open, Call call) {
  while (is_changing_) me_.port().pause(0);
  if (open_ == to_open) return {};
  is_changing_ = true;
  const answer changed = [&]() -> answer {
    const outside meanwhile;
    return result_of(with_handler::window(win_), call);
  }();
  is_changing_ = false;
  if (changed.code == MPI_SUCCESS) open_ = to_open;
  return changed;
}

answer window::open() {
  if (open_ && !is_changing_) [[likely]]
    return {};
  const answer opened =
      change_epoch(true, [&] { return pmpi().Win_lock_all(MPI_MODE_NOCHECK, win_); });
  check_calls();
  return opened;
}

// The record of begun operations is cleared before the flush: operations that another thread begins
// meanwhile are recorded again.
int window::flush(int target) {
  const auto t = static_cast<std::size_t>(target);
  const bool is_target = t < held_.size();  // and not MPI_PROC_NULL
  if (is_target) begun_[t].store(false, std::memory_order_relaxed);
  if (is_target && held_[t] == epoch::exclusive) [[likely]] {
    const keeping_the_processor meanwhile;
    return pmpi().Win_flush(target, win_);
  }
  // A process that shares the target, or has locked all, may poll for others' writes: it yields.
  // A process without a lock makes a mistake, and MPI answers as it would without the drop-in.
  if (!holds_some()) [[unlikely]] {
    const answer ready = end_unused_epoch();
    if (ready.code != MPI_SUCCESS) return raise(with_handler::window(win_), ready);
  }
  return pmpi().Win_flush(target, win_);
}

// Without operations to complete, what remains of an unlock's promises is that the epoch's own
// loads and stores on the window's memory come before it (MPI-3.1, section 11.7). Release is
// enough: the process that enters next has read the value that the lock's release writes after
// this, or, in an epoch that was not checked, a message that the program sends after it.
answer window::complete(int target) {
  std::atomic<bool>& begun = begun_[static_cast<std::size_t>(target)];
  if (begun.load(std::memory_order_relaxed)) {
    begun.store(false, std::memory_order_relaxed);
    return waiting_for_mpi([&] { return pmpi().Win_flush(target, win_); });
  }
  std::atomic_thread_fence(std::memory_order_release);
  return {};
}

answer window::complete_all() {
  if (begun_anywhere_.load(std::memory_order_relaxed)) {
    begun_anywhere_.store(false, std::memory_order_relaxed);
    return waiting_for_mpi([&] { return pmpi().Win_flush_all(win_); });
  }
  std::atomic_thread_fence(std::memory_order_release);
  return {};
}

answer window::end_unused_epoch() {
  const entry in;
  if (holds_some()) return {};
  return change_epoch(false, [&] { return pmpi().Win_unlock_all(win_); });
}

// MPI's epoch is opened first: if MPI refuses (a fence or PSCW epoch is open), no lock was taken.
answer window::lock(int type, int target, int assertion) {
  const entry in;
  if (type != MPI_LOCK_EXCLUSIVE && type != MPI_LOCK_SHARED) return {.code = MPI_ERR_LOCKTYPE};
  if ((assertion & ~MPI_MODE_NOCHECK) != 0) return {.code = class_of_bad_assertion};
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
      observer_.acquire(lock_kind::exclusive, target, [&] { locks_->lock(target); });
    else
      observer_.acquire(lock_kind::shared, target, [&] { locks_->lock_shared(target); });
  } catch (const std::length_error&) {
    // A lock with queues, and all queue nodes of this process are in use
    // (participant::most_nested).
    here = epoch::none;
    --targets_held_;
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
      observer_.released(lock_kind::exclusive, target);
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

bool window::lock_quickly(int type, int target, int assertion) {
  const auto t = static_cast<std::size_t>(target);
  if (!is_quick_ || !open_ || all_ != epoch::none || assertion != 0 || t >= held_.size())
    return false;
  epoch& here = held_[t];
  const bool exclusive = type == MPI_LOCK_EXCLUSIVE;
  if (here != epoch::none || (!exclusive && type != MPI_LOCK_SHARED)) return false;
  const char* const kind = exclusive ? "exclusive" : "shared";
  probes::acquire(this, target, kind);
  // If no queue node is left this throws, and the usual way returns the error.
  try {
    if (exclusive)
      locks_->lock(target);
    else
      locks_->lock_shared(target);
  } catch (const std::length_error&) {
    return false;
  }
  here = exclusive ? epoch::exclusive : epoch::shared;
  probes::acquired(this, target, kind);
  ++targets_held_;
  return true;
}

bool window::unlock_quickly(int target, int& code) {
  const auto t = static_cast<std::size_t>(target);
  if (!is_quick_ || t >= held_.size()) return false;
  epoch& here = held_[t];
  if (here != epoch::exclusive && here != epoch::shared) return false;
  // As in complete().
  if (begun_[t].load(std::memory_order_relaxed)) {
    begun_[t].store(false, std::memory_order_relaxed);
    const keeping_the_processor meanwhile;
    code = detail::all_calls.own.Win_flush(target, win_);
  } else {
    std::atomic_thread_fence(std::memory_order_release);
  }
  if (here == epoch::exclusive)
    locks_->unlock(target);
  else
    locks_->unlock_shared(target);
  here = epoch::none;
  --targets_held_;
  if (code == MPI_SUCCESS) probes::released(this, target);
  return true;
}

answer window::lock_all(int assertion) {
  const entry in;
  if ((assertion & ~MPI_MODE_NOCHECK) != 0) return {.code = class_of_bad_assertion};
  if (all_ != epoch::none || targets_held_ > 0) return {.code = MPI_ERR_RMA_SYNC};
  if (by_mpi_) return lock_all_by_mpi(assertion);
  const answer opened = open();
  if (opened.code != MPI_SUCCESS) return opened;
  all_ = epoch::shared;
  checks_left_ = checks_until_the_end_;
  if ((assertion & MPI_MODE_NOCHECK) != 0)
    all_ = epoch::unchecked;
  else
    observer_.acquire(lock_kind::all, -1, [&] { locks_->lock_all(); });
  return {};
}

answer window::unlock_all() {
  const entry in;
  if (all_ == epoch::none) return {.code = MPI_ERR_RMA_SYNC};
  if (by_mpi_) return unlock_all_by_mpi();
  const answer completed = complete_all();
  if (all_ == epoch::shared) locks_->unlock_all();
  all_ = epoch::none;  // not before, as in unlock
  check_calls();       // from here on an operation is refused
  return completed;
}

void window::has_stopped_checks(bool succeeded) {
  constexpr std::uint32_t most = std::uint32_t{1} << 30;
  checks_until_the_end_ = succeeded ? usual_checks : std::min(2 * checks_until_the_end_, most);
  checks_left_ = checks_until_the_end_;
}

std::string window::summary() const { return observer_.summary(*grant_.group, grant_.at); }

}  // namespace lockflight::mpi_preload
