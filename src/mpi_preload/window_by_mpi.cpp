// The epochs of a window whose locks are MPI's own.
#include <stdexcept>

#include "mpi_preload/pmpi.hpp"
#include "mpi_preload/threads.hpp"
#include "mpi_preload/window.hpp"

namespace lockflight::mpi_preload {

// Other threads may hold the lock that the call waits for. With several threads the handler stays
// as it is: another thread's call may have an error too, and the wait for a lock may be long.
template <class Call>
answer window::waiting_in_mpi(Call call) {
  const outside meanwhile;
  if (many_threads()) return answer::of_mpi(call());
  return result_of(with_handler::window(win_), call);
}

// A queue pays if the same process locks the target again at once, and others do so too. Locks that
// are spread over targets meet few others, and would not profit from the queue's round trip.
bool window::comes_again_for(int target) {
  constexpr int often = 3;
  if (target != last_target_) times_in_a_row_ = 0;
  last_target_ = target;
  if (times_in_a_row_ <= often) ++times_in_a_row_;
  return times_in_a_row_ > often && queues_before_mpi(held_.size());
}

// Exclusion does not rest on the queue: the rank at its head still takes MPI's lock, as do ranks
// that never queue.
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
  bool has_queued = false;
  try {
    observer_.acquire(exclusive ? lock_kind::exclusive : lock_kind::shared, target, [&] {
      if (queues) locks_->lock(target);
      has_queued = queues;
      locked = waiting_in_mpi([&] { return pmpi().Win_lock(type, target, checked, win_); });
    });
  } catch (const std::length_error&) {
    locked = {.code = MPI_ERR_NO_MEM};
  }
  if (locked.code == MPI_SUCCESS) return locked;
  if (has_queued) locks_->unlock(target);
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
  observer_.acquire(lock_kind::all, -1, [&] {
    locked = waiting_in_mpi([&] { return pmpi().Win_lock_all(assertion, win_); });
  });
  if (locked.code != MPI_SUCCESS) all_ = epoch::none;
  return locked;
}

answer window::unlock_all_by_mpi() {
  const answer unlocked = waiting_in_mpi([&] { return pmpi().Win_unlock_all(win_); });
  all_ = epoch::none;
  return unlocked;
}

}  // namespace lockflight::mpi_preload
