// A window whose passive-target synchronisation is the drop-in's.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lockflight/fabric/mpi.hpp"
#include "mpi_preload/errors.hpp"
#include "mpi_preload/observer.hpp"
#include "mpi_preload/scheme.hpp"
#include "mpi_preload/window_grant.hpp"
#include "mpi_preload/zeroed_array.hpp"

namespace lockflight::mpi_preload {

/// The locks beside a window of MPI: this process's side of them, and which epochs it has open.
///
/// For MPI the window is in one epoch, lock_all with MPI_MODE_NOCHECK, from the first lock on: this
/// says that the exclusion is ensured elsewhere. So data operations and flushes stay MPI's, and a
/// lock costs only the drop-in's lock. Active-target calls end that epoch, and the next lock opens
/// it again.
///
/// Over several hosts the locks are MPI's own (way_of_mpi), and every call goes to it; only a
/// process that locks one target exclusively again and again waits in a queue before.
///
/// With MPI_THREAD_MULTIPLE any thread may call; one at a time is in any window of the process, and
/// a waiting thread lets the others in.
class window {
 public:
  /// Makes a window's locks in a place of words_of_window. All ranks of the group make the same
  /// (C20). `is_usual`: the window's info chooses none of its locks, on this rank.
  window(MPI_Win of, const window_grant& grant, const observation& what, bool is_usual);
  /// Called before MPI frees the window, which it may refuse.
  void about_to_be_freed();
  /// Called when MPI has freed the window: after this, it is only destroyed, or used again.
  void end();
  /// True if the window's locks, as they are now, can be those of another window of the same ranks:
  /// all are free, and nothing was counted. After end().
  [[nodiscard]] bool can_be_used_again() const { return can_be_used_again_; }
  [[nodiscard]] bool is_usual() const { return is_usual_; }
  /// From here on these are the locks of this window.
  void use_again(MPI_Win by);
  window(const window&) = delete;
  window& operator=(const window&) = delete;

  // MPI's calls.
  answer lock(int type, int target, int assertion);
  answer unlock(int target);
  answer lock_all(int assertion);
  answer unlock_all();
  /// lock and unlock where there is nothing to do besides the drop-in's own lock, and a flush:
  /// MPI's epoch is open, and no wait is observed. False, and nothing is done, elsewhere. `code` is
  /// that of the flush, whose errors the MPI has reported. For programs of which one thread at a
  /// time calls MPI.
  [[nodiscard]] bool lock_quickly(int type, int target, int assertion);
  [[nodiscard]] bool unlock_quickly(int target, int& code);
  int flush(int target);  // MPI's own, and so are its errors
  /// Before MPI's flush of all targets: operations that another thread begins meanwhile are
  /// recorded again.
  void note_flush_of_all() { begun_anywhere_.store(false, std::memory_order_relaxed); }
  /// MPI's own epoch ends if this process holds no lock.
  answer end_unused_epoch();

  /// True if MPI, which has the window in an epoch of all targets, would refuse an operation on
  /// this one if it knew the locks.
  [[nodiscard]] bool refuses(int target) const {
    return open_ && all_ == epoch::none && target >= 0 &&
           static_cast<std::size_t>(target) < held_.size() &&
           held_[static_cast<std::size_t>(target)] == epoch::none;
  }
  /// True if this process has locked a target, or all. For programs of which one thread at a time
  /// calls MPI.
  [[nodiscard, gnu::always_inline]] bool holds_some() const {
    return all_ != epoch::none || targets_held_ > 0;
  }
  [[nodiscard, gnu::always_inline]] bool holds_all() const { return all_ != epoch::none; }
  /// True if this process has locked the target, or all: then an operation on it, which is about
  /// to begin, is recorded. False, too, if checks_are_over(). For programs of which one thread at a
  /// time calls MPI.
  [[nodiscard, gnu::always_inline]] bool note_in_epoch(int target) {
    // The call that completes the operation, unlock_all or unlock, reads only the one record.
    if (all_ != epoch::none) {
      if (--checks_left_ == 0) return false;
      begun_anywhere_.store(true, std::memory_order_relaxed);
      return true;
    }
    const auto t = static_cast<std::size_t>(target);
    if (t >= held_.size() || held_[t] == epoch::none) return false;
    begun_[t].store(true, std::memory_order_relaxed);
    return true;
  }
  /// True if so many operations were checked while all targets are locked that the calls are to be
  /// left to the MPI, if no window needs a check.
  [[nodiscard]] bool checks_are_over() const { return checks_left_ == 0; }
  /// The calls were left to the MPI, or, if `succeeded` is false, another window needs its checks:
  /// then the next attempt comes after twice as many operations.
  void has_stopped_checks(bool succeeded);
  /// True if an operation on the window may have to be refused: its MPI's epoch is of all targets,
  /// and the locks are not.
  [[nodiscard]] bool needs_checks() const { return open_ && all_ == epoch::none; }
  /// Records the operations that are about to begin without a check.
  void note_operations_to_come() {
    if (all_ != epoch::none) begun_anywhere_.store(true, std::memory_order_relaxed);
  }
  /// Records that an operation on this target's memory has begun; any thread may call this. If the
  /// program's threads do not call MPI at the same time, the operation is only about to begin. An
  /// operation that MPI refuses costs a flush.
  void note_operation(int target) {
    // MPI_PROC_NULL, or no target at all
    if (static_cast<std::size_t>(target) >= held_.size()) return;
    begun_[static_cast<std::size_t>(target)].store(true, std::memory_order_relaxed);
    begun_anywhere_.store(true, std::memory_order_relaxed);
  }

  [[nodiscard]] const scheme_name& scheme() const { return scheme_; }
  /// The place is to be given back when all ranks have come to the end.
  [[nodiscard]] const window_grant& grant() const { return grant_; }
  /// The counts of all ranks, if one of them wants counts; the text is rank 0's. After
  /// about_to_be_freed(). No rank uses the window's words any more once this has returned on rank
  /// 0. Collective.
  [[nodiscard]] std::string summary() const;

 private:
  // To bind all names to the MPI and back takes as long as some hundred checks. An epoch has so
  // many checked operations before that the binding costs a hundredth of their time at the most.
  static constexpr std::uint32_t usual_checks = 1000;

  // none: 0. Of exclusive locks of MPI's, queued: behind our own queue.
  enum class epoch : std::uint8_t { none, shared, exclusive, unchecked, queued };
  answer open();
  template <class Call>
  answer change_epoch(bool to_open, Call call);
  // The functions for windows whose locks are MPI's own (window_by_mpi.cpp).
  /// A call of MPI's that may wait for a lock.
  template <class Call>
  answer waiting_in_mpi(Call call);
  answer lock_by_mpi(int type, int target, int assertion);
  answer unlock_by_mpi(int target);
  answer lock_all_by_mpi(int assertion);
  answer unlock_all_by_mpi();
  [[nodiscard]] bool comes_again_for(int target);
  answer complete(int target);
  answer complete_all();

  static void while_waiting();

  MPI_Win win_;
  window_grant grant_;
  scheme_name scheme_;
  rma::participant<mpi::port> me_;
  std::unique_ptr<mpi_preload::scheme> locks_;

  zeroed_array<epoch> held_;  // of each target
  std::size_t targets_held_ = 0;
  epoch all_ = epoch::none;
  bool open_ = false;                      // MPI's epoch
  bool is_changing_ = false;               // a thread of ours has MPI open or close it
  zeroed_array<std::atomic<bool>> begun_;  // on each target: operations that no flush has completed
  std::atomic<bool> begun_anywhere_{false};

  // Checks while all targets are locked: how many until they are to end, and how many in all.
  std::uint32_t checks_left_ = usual_checks;
  std::uint32_t checks_until_the_end_ = usual_checks;

  bool is_usual_;
  bool can_be_used_again_ = false;
  bool by_mpi_;           // the way is way_of_mpi
  bool is_quick_;         // it is not, and no wait is observed
  int last_target_ = -1;  // of the last exclusive lock, and how often in a row
  int times_in_a_row_ = 0;

  observer observer_;  // after the locks, whose cells come first
};

}  // namespace lockflight::mpi_preload
