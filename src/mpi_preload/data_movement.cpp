// The calls that move data. MPI does all of it; the drop-in only records that there is an operation
// to complete at the next unlock. An unlock with nothing to complete calls no MPI, and so cannot be
// delayed by it: Open MPI 4.1 yields the processor in every flush when ranks outnumber cores.
#include "mpi_preload/interpose.hpp"
#include "mpi_preload/threads.hpp"
#include "mpi_preload/windows.hpp"

namespace {

namespace preload = lockflight::mpi_preload;
using preload::pmpi;

/// Begins an operation by MPI's own call, and records it for the next unlock. An operation before
/// any lock need not be recorded: it belongs to an epoch with an active target, whose end completes
/// it. It is recorded once it has begun, since another thread's flush may clear the record before.
template <class Call>
int noted(int target, MPI_Win win, Call call) {
  preload::window* const ours = preload::find(win);
  if (ours != nullptr && ours->refuses(target))
    return preload::raise(preload::with_handler::window(win), {.code = MPI_ERR_RMA_SYNC});
  const int begun = call();
  if (ours == nullptr) return begun;
  if (begun == MPI_SUCCESS) ours->note_operation(target);
  if (ours->checks_are_over()) preload::stop_checks(*ours);
  return begun;
}

}  // namespace

// An operation is recorded before it begins if one thread at a time calls MPI. The record needs no
// call, and MPI's call is the last step of its caller. So the arguments stay where they are; under
// Open MPI a small get takes as long as moving them.
#define LOCKFLIGHT_NOTED(call, parameters, arguments)                                         \
  LOCKFLIGHT_INTERPOSE_PASSED_ON(call, parameters, arguments,                                 \
                                 if (preload::window* const ours = preload::found_alone(win); \
                                     ours != nullptr && ours->note_in_epoch(target))          \
                                     [[likely]] return preload::mpi_of_found_alone()          \
                                         .call arguments;) {                                  \
    return noted(target, win, [&] { return pmpi().call arguments; });                         \
  }

// Most calls exist with counts of two types (MPI 4).
#define LOCKFLIGHT_COUNTED_CALLS(suffix, count)                                                    \
  LOCKFLIGHT_NOTED(Put##suffix,                                                                    \
                   (const void* from, count n, MPI_Datatype type, int target, MPI_Aint at,         \
                    count target_n, MPI_Datatype target_type, MPI_Win win),                        \
                   (from, n, type, target, at, target_n, target_type, win))                        \
  LOCKFLIGHT_NOTED(Get##suffix,                                                                    \
                   (void* to, count n, MPI_Datatype type, int target, MPI_Aint at, count target_n, \
                    MPI_Datatype target_type, MPI_Win win),                                        \
                   (to, n, type, target, at, target_n, target_type, win))                          \
  LOCKFLIGHT_NOTED(Accumulate##suffix,                                                             \
                   (const void* from, count n, MPI_Datatype type, int target, MPI_Aint at,         \
                    count target_n, MPI_Datatype target_type, MPI_Op op, MPI_Win win),             \
                   (from, n, type, target, at, target_n, target_type, op, win))                    \
  LOCKFLIGHT_NOTED(                                                                                \
      Get_accumulate##suffix,                                                                      \
      (const void* from, count n, MPI_Datatype type, void* before, count before_n,                 \
       MPI_Datatype before_type, int target, MPI_Aint at, count target_n,                          \
       MPI_Datatype target_type, MPI_Op op, MPI_Win win),                                          \
      (from, n, type, before, before_n, before_type, target, at, target_n, target_type, op, win))  \
  LOCKFLIGHT_NOTED(Rput##suffix,                                                                   \
                   (const void* from, count n, MPI_Datatype type, int target, MPI_Aint at,         \
                    count target_n, MPI_Datatype target_type, MPI_Win win, MPI_Request* request),  \
                   (from, n, type, target, at, target_n, target_type, win, request))               \
  LOCKFLIGHT_NOTED(Rget##suffix,                                                                   \
                   (void* to, count n, MPI_Datatype type, int target, MPI_Aint at, count target_n, \
                    MPI_Datatype target_type, MPI_Win win, MPI_Request* request),                  \
                   (to, n, type, target, at, target_n, target_type, win, request))                 \
  LOCKFLIGHT_NOTED(                                                                                \
      Raccumulate##suffix,                                                                         \
      (const void* from, count n, MPI_Datatype type, int target, MPI_Aint at, count target_n,      \
       MPI_Datatype target_type, MPI_Op op, MPI_Win win, MPI_Request* request),                    \
      (from, n, type, target, at, target_n, target_type, op, win, request))                        \
  LOCKFLIGHT_NOTED(Rget_accumulate##suffix,                                                        \
                   (const void* from, count n, MPI_Datatype type, void* before, count before_n,    \
                    MPI_Datatype before_type, int target, MPI_Aint at, count target_n,             \
                    MPI_Datatype target_type, MPI_Op op, MPI_Win win, MPI_Request* request),       \
                   (from, n, type, before, before_n, before_type, target, at, target_n,            \
                    target_type, op, win, request))

LOCKFLIGHT_COUNTED_CALLS(, int)
#if MPI_VERSION >= 4
LOCKFLIGHT_COUNTED_CALLS(_c, MPI_Count)
#endif

LOCKFLIGHT_NOTED(Fetch_and_op,
                 (const void* from, void* before, MPI_Datatype type, int target, MPI_Aint at,
                  MPI_Op op, MPI_Win win),
                 (from, before, type, target, at, op, win))

LOCKFLIGHT_NOTED(Compare_and_swap,
                 (const void* from, const void* expected, void* before, MPI_Datatype type,
                  int target, MPI_Aint at, MPI_Win win),
                 (from, expected, before, type, target, at, win))
