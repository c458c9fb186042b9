// The waits in a window: the rank that waits, the rank that it waits for, and how long. For
// LOCKFLIGHT_MPI_STATS, and for the lines about waits that last.
#pragma once

#include <mpi.h>

#include <string>

#include "lockflight/fabric/mpi.hpp"
#include "mpi_preload/scheme.hpp"
#include "mpi_preload/statistics.hpp"
#include "mpi_preload/window_group.hpp"

namespace lockflight::mpi_preload {

class observer {
 public:
  /// Takes words of `me`, as words_of_observers says.
  observer(MPI_Win of, rma::participant<mpi::port>& me, const scheme_name& scheme,
           const observation& what);
  observer(const observer&) = delete;
  observer& operator=(const observer&) = delete;

  [[nodiscard]] bool observes() const { return observes_; }

  /// Acquires by `how`, which may throw. `target` is -1 for all.
  template <class Acquire>
  void acquire(lock_kind kind, int target, Acquire how) {
    if (!observes_) return how();
    note_holder(kind, target);
    wait now{.kind = kind, .target = target, .since = PMPI_Wtime(), .in = this};
    {
      const waits_here from_now_on(now);
      how();
    }
    has_waited(now);
  }
  /// Called before the release.
  void released(lock_kind kind, int target);

  /// Prints a line if this thread has waited for long, once in each wait.
  static void tell_if_this_thread_hangs();
  /// Stores the window's name for the summary, before MPI frees the window.
  void note_name();
  /// The counts of all ranks, if one of them wants counts; the text is rank 0's. No rank uses the
  /// window's words any more once this has returned on rank 0. Collective.
  [[nodiscard]] std::string summary(window_group& group, const window_place& at) const;

 private:
  struct wait {
    lock_kind kind{};
    int target = -1;  // -1: all
    double since = 0;
    bool told = false;
    observer* in = nullptr;
  };
  class waits_here {
   public:
    explicit waits_here(wait& what) { waiting_ = &what; }
    ~waits_here() { waiting_ = nullptr; }
    waits_here(const waits_here&) = delete;
    waits_here& operator=(const waits_here&) = delete;
  };

  void has_waited(const wait& what);
  void note_holder(lock_kind kind, int target);
  void tell_if_it_hangs();
  /// ", for rank 3, which …", or that there is no such rank: only what is known.
  [[nodiscard]] std::string holder_for(const wait& what);
  [[nodiscard]] std::string who_holds(int target);

  MPI_Win win_;
  rma::participant<mpi::port>& me_;
  scheme_name scheme_;
  bool by_mpi_;             // the way is way_of_mpi
  bool counts_;             // somebody wants the statistics
  bool observes_;           // or to know the holders of locks
  rma::plain_cell holder_;  // at each target: rank + 1 of the exclusive holder; if asked for
  rma::plain_cell last_;    // at each target: rank + 1 of the last holder; if asked for
  window_statistics counted_;
  std::string name_;  // with counts
  static thread_local wait* waiting_;
};

}  // namespace lockflight::mpi_preload
