// The calls behind the drop-in: the MPI's own, by the names of its profiling interface, and those
// of profiling tools. The drop-in interposes MPI_X and PMPI_X alike, since Open MPI's bindings for
// Fortran, and tools, call PMPI_X.
#pragma once

#include <mpi.h>

#include <atomic>

namespace lockflight::mpi_preload {

// Every call that is interposed. MPI 4 has the data movement and most of the calls that make
// windows a second time, with large counts.
// clang-format off

// The calls of which the drop-in does a part in every program.
#define LOCKFLIGHT_ALWAYS_OURS(CALL)                                                  \
  CALL(Win_create) CALL(Win_allocate) CALL(Win_allocate_shared)                         \
  CALL(Win_create_dynamic) CALL(Win_free) CALL(Win_get_info) CALL(Finalize)             \
  CALL(Win_lock) CALL(Win_unlock) CALL(Win_lock_all) CALL(Win_unlock_all)
// The calls that are the MPI's but for what some windows need (bindings.hpp).
#define LOCKFLIGHT_PASSED_ON(CALL)                                                    \
  CALL(Win_flush) CALL(Win_flush_all) CALL(Win_flush_local) CALL(Win_flush_local_all)   \
  CALL(Win_sync) CALL(Win_fence) CALL(Win_start) CALL(Win_post)                         \
  CALL(Put) CALL(Get) CALL(Accumulate) CALL(Get_accumulate)                             \
  CALL(Fetch_and_op) CALL(Compare_and_swap)                                             \
  CALL(Rput) CALL(Rget) CALL(Raccumulate) CALL(Rget_accumulate)
#if MPI_VERSION >= 4
#define LOCKFLIGHT_ALWAYS_OURS_LARGE(CALL)                                            \
  CALL(Win_create_c) CALL(Win_allocate_c) CALL(Win_allocate_shared_c)
#define LOCKFLIGHT_PASSED_ON_LARGE(CALL)                                              \
  CALL(Put_c) CALL(Get_c) CALL(Accumulate_c) CALL(Get_accumulate_c)                     \
  CALL(Rput_c) CALL(Rget_c) CALL(Raccumulate_c) CALL(Rget_accumulate_c)
#else
#define LOCKFLIGHT_ALWAYS_OURS_LARGE(CALL)
#define LOCKFLIGHT_PASSED_ON_LARGE(CALL)
#endif
#define LOCKFLIGHT_INTERPOSED(CALL) LOCKFLIGHT_ALWAYS_OURS(CALL) LOCKFLIGHT_PASSED_ON(CALL)
#define LOCKFLIGHT_INTERPOSED_LARGE(CALL)                                             \
  LOCKFLIGHT_ALWAYS_OURS_LARGE(CALL) LOCKFLIGHT_PASSED_ON_LARGE(CALL)
// clang-format on

struct mpi_calls {
#define LOCKFLIGHT_DECLARE(call) decltype(&PMPI_##call) call;
  LOCKFLIGHT_INTERPOSED(LOCKFLIGHT_DECLARE)
  LOCKFLIGHT_INTERPOSED_LARGE(LOCKFLIGHT_DECLARE)
#undef LOCKFLIGHT_DECLARE
};
/// The functions to which the drop-in passes calls that it does not handle.
struct calls_behind {
  mpi_calls own;  ///< the MPI's
  mpi_calls
      next;  ///< the calls of a profiling tool that is loaded behind the drop-in, or the MPI's
};

namespace detail {
extern constinit calls_behind all_calls;  // where looked_up leads
extern constinit std::atomic<const calls_behind*> looked_up;
[[nodiscard]] const calls_behind& look_up();
}  // namespace detail

/// The calls behind us if they were looked up, as they are when there is a window of the drop-in;
/// else null. Acquire: perhaps another thread has looked them up.
[[nodiscard, gnu::always_inline]] inline const calls_behind* known_behind() {
  return detail::looked_up.load(std::memory_order_acquire);
}
/// The calls behind us. Ends the process with exit code 3 if no MPI is loaded there.
[[nodiscard]] inline const calls_behind& behind() {
  const calls_behind* const known = known_behind();
  return known != nullptr ? *known : detail::look_up();
}
/// `pmpi().Win_lock(…)` is the MPI's own MPI_Win_lock.
[[nodiscard]] inline const mpi_calls& pmpi() { return behind().own; }

/// True if a profiling tool is loaded behind us. Of calls that were looked up.
[[nodiscard]] bool has_tool_behind();

}  // namespace lockflight::mpi_preload
