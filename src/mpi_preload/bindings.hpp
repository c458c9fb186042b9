// The functions to which the drop-in's names of those calls lead that the MPI does by itself: data
// movement, flushes, and the synchronisation of active targets.
//
// A name is one jump through a pointer. As long as no window needs a check of its calls the
// pointers lead straight into the MPI; otherwise they lead to the drop-in's checks. Of a window
// that was never locked, and of one that is locked as a whole, the drop-in has nothing to check: an
// operation on any target is right, and all that unlock_all has to know is that there may have been
// one.
#pragma once

#include <atomic>

#include "mpi_preload/pmpi.hpp"

namespace lockflight::mpi_preload {

/// The checks, with the arguments of the MPI's calls. Defined by LOCKFLIGHT_INTERPOSE_PASSED_ON
/// (interpose.hpp).
#define LOCKFLIGHT_DECLARE(call) decltype(PMPI_##call) call;
namespace checks::of_name {  // of MPI_X: a tool behind the drop-in sees the call
LOCKFLIGHT_PASSED_ON(LOCKFLIGHT_DECLARE)
LOCKFLIGHT_PASSED_ON_LARGE(LOCKFLIGHT_DECLARE)
}  // namespace checks::of_name
namespace checks::of_profiling_name {  // of PMPI_X
LOCKFLIGHT_PASSED_ON(LOCKFLIGHT_DECLARE)
LOCKFLIGHT_PASSED_ON_LARGE(LOCKFLIGHT_DECLARE)
}  // namespace checks::of_profiling_name
#undef LOCKFLIGHT_DECLARE

namespace bindings {

/// Relaxed, all accesses. A thread whose call must be checked, since it belongs to an epoch or
/// follows it on the same window, is ordered by the program after the lock or unlock_all that has
/// set the pointers (MPI-3.1, section 11.7). For all other threads either function is right. The
/// functions need nothing that was written before the pointers: the MPI is loaded, and the checks
/// look up by themselves what is behind them.
struct pointers {
#define LOCKFLIGHT_DECLARE(call) std::atomic<decltype(&PMPI_##call)> call;
  LOCKFLIGHT_PASSED_ON(LOCKFLIGHT_DECLARE)
  LOCKFLIGHT_PASSED_ON_LARGE(LOCKFLIGHT_DECLARE)
#undef LOCKFLIGHT_DECLARE
};
extern constinit pointers of_name;
extern constinit pointers of_profiling_name;
extern constinit std::atomic<bool> are_straight;

}  // namespace bindings

/// From here on no call is checked. The calls behind us have been found, and no window needs a
/// check.
void leave_calls_to_mpi();
/// From here on all calls are checked.
void check_all_calls();
/// The same, of windows of which one needs a check from here on. The calls behind us are known.
inline void check_calls() {
  if (bindings::are_straight.load(std::memory_order_relaxed)) [[unlikely]]
    check_all_calls();
}

}  // namespace lockflight::mpi_preload
