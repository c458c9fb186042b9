// The MPI beneath us. We stand in for MPI_X and for PMPI_X alike, since Open MPI's bindings for
// Fortran, and profiling tools above us, call PMPI_X; so what we call ourselves is looked up.
#pragma once

#include <mpi.h>

namespace lockflight::mpi_preload {

// Every call that we stand in for; MPI 4 has the data movement and most of what makes windows a
// second time, with large counts.
// clang-format off
#define LOCKFLIGHT_STOOD_IN_FOR(CALL)                                                   \
  CALL(Win_create) CALL(Win_allocate) CALL(Win_allocate_shared)                         \
  CALL(Win_create_dynamic) CALL(Win_free) CALL(Win_get_info) CALL(Finalize)             \
  CALL(Win_lock) CALL(Win_unlock) CALL(Win_lock_all) CALL(Win_unlock_all)               \
  CALL(Win_flush) CALL(Win_flush_all) CALL(Win_fence) CALL(Win_start) CALL(Win_post)    \
  CALL(Put) CALL(Get) CALL(Accumulate) CALL(Get_accumulate)                             \
  CALL(Fetch_and_op) CALL(Compare_and_swap)                                             \
  CALL(Rput) CALL(Rget) CALL(Raccumulate) CALL(Rget_accumulate)
#if MPI_VERSION >= 4
#define LOCKFLIGHT_STOOD_IN_FOR_LARGE(CALL)                                             \
  CALL(Win_create_c) CALL(Win_allocate_c) CALL(Win_allocate_shared_c)                   \
  CALL(Put_c) CALL(Get_c) CALL(Accumulate_c) CALL(Get_accumulate_c)                     \
  CALL(Rput_c) CALL(Rget_c) CALL(Raccumulate_c) CALL(Rget_accumulate_c)
#else
#define LOCKFLIGHT_STOOD_IN_FOR_LARGE(CALL)
#endif
// clang-format on

/// `beneath().Win_lock(…)` is the MPI's own MPI_Win_lock.
struct mpi_calls {
#define LOCKFLIGHT_DECLARE(call) decltype(&PMPI_##call) call;
  LOCKFLIGHT_STOOD_IN_FOR(LOCKFLIGHT_DECLARE)
  LOCKFLIGHT_STOOD_IN_FOR_LARGE(LOCKFLIGHT_DECLARE)
#undef LOCKFLIGHT_DECLARE
};
/// Ends the process with exit code 3 if no MPI is loaded behind us.
[[nodiscard]] const mpi_calls& beneath();

}  // namespace lockflight::mpi_preload
