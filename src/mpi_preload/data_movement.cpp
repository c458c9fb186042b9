// The calls that move data. MPI does all of it; what they leave behind is that there is something
// to complete at the next unlock. An unlock with nothing to complete calls no MPI, and so cannot be
// kept waiting by it: Open MPI 4.1 yields the processor in every flush when ranks outnumber cores.
#include "mpi_preload/stand_in.hpp"
#include "mpi_preload/windows.hpp"

namespace {

namespace preload = lockflight::mpi_preload;
using preload::beneath;
using preload::mpi_calls;

/// Begins an operation by MPI's own call, and notes it for the next unlock. A program that never
/// locks pays a look at one variable.
template <class Call, class... Arguments>
[[gnu::always_inline]] inline int noted(MPI_Win win, int target, Call mpi_calls::*call,
                                        Arguments... arguments) {
  const int begun = (beneath().*call)(arguments...);
  if (!preload::anything_locked.load(std::memory_order_relaxed) || begun != MPI_SUCCESS)
    return begun;
  if (preload::window* const ours = preload::find(win)) ours->note_operation(target);
  return begun;
}

}  // namespace

// Most exist with counts of two types (MPI 4).
#define LOCKFLIGHT_COUNTED_CALLS(suffix, count)                                                    \
  LOCKFLIGHT_STAND_IN(Put##suffix)                                                                 \
  (const void* from, count n, MPI_Datatype type, int target, MPI_Aint at, count target_n,          \
   MPI_Datatype target_type, MPI_Win win) {                                                        \
    return noted(win, target, &mpi_calls::Put##suffix, from, n, type, target, at, target_n,        \
                 target_type, win);                                                                \
  }                                                                                                \
  LOCKFLIGHT_STAND_IN(Get##suffix)                                                                 \
  (void* to, count n, MPI_Datatype type, int target, MPI_Aint at, count target_n,                  \
   MPI_Datatype target_type, MPI_Win win) {                                                        \
    return noted(win, target, &mpi_calls::Get##suffix, to, n, type, target, at, target_n,          \
                 target_type, win);                                                                \
  }                                                                                                \
  LOCKFLIGHT_STAND_IN(Accumulate##suffix)                                                          \
  (const void* from, count n, MPI_Datatype type, int target, MPI_Aint at, count target_n,          \
   MPI_Datatype target_type, MPI_Op op, MPI_Win win) {                                             \
    return noted(win, target, &mpi_calls::Accumulate##suffix, from, n, type, target, at, target_n, \
                 target_type, op, win);                                                            \
  }                                                                                                \
  LOCKFLIGHT_STAND_IN(Get_accumulate##suffix)                                                      \
  (const void* from, count n, MPI_Datatype type, void* before, count before_n,                     \
   MPI_Datatype before_type, int target, MPI_Aint at, count target_n, MPI_Datatype target_type,    \
   MPI_Op op, MPI_Win win) {                                                                       \
    return noted(win, target, &mpi_calls::Get_accumulate##suffix, from, n, type, before, before_n, \
                 before_type, target, at, target_n, target_type, op, win);                         \
  }                                                                                                \
  LOCKFLIGHT_STAND_IN(Rput##suffix)                                                                \
  (const void* from, count n, MPI_Datatype type, int target, MPI_Aint at, count target_n,          \
   MPI_Datatype target_type, MPI_Win win, MPI_Request* request) {                                  \
    return noted(win, target, &mpi_calls::Rput##suffix, from, n, type, target, at, target_n,       \
                 target_type, win, request);                                                       \
  }                                                                                                \
  LOCKFLIGHT_STAND_IN(Rget##suffix)                                                                \
  (void* to, count n, MPI_Datatype type, int target, MPI_Aint at, count target_n,                  \
   MPI_Datatype target_type, MPI_Win win, MPI_Request* request) {                                  \
    return noted(win, target, &mpi_calls::Rget##suffix, to, n, type, target, at, target_n,         \
                 target_type, win, request);                                                       \
  }                                                                                                \
  LOCKFLIGHT_STAND_IN(Raccumulate##suffix)                                                         \
  (const void* from, count n, MPI_Datatype type, int target, MPI_Aint at, count target_n,          \
   MPI_Datatype target_type, MPI_Op op, MPI_Win win, MPI_Request* request) {                       \
    return noted(win, target, &mpi_calls::Raccumulate##suffix, from, n, type, target, at,          \
                 target_n, target_type, op, win, request);                                         \
  }                                                                                                \
  LOCKFLIGHT_STAND_IN(Rget_accumulate##suffix)                                                     \
  (const void* from, count n, MPI_Datatype type, void* before, count before_n,                     \
   MPI_Datatype before_type, int target, MPI_Aint at, count target_n, MPI_Datatype target_type,    \
   MPI_Op op, MPI_Win win, MPI_Request* request) {                                                 \
    return noted(win, target, &mpi_calls::Rget_accumulate##suffix, from, n, type, before,          \
                 before_n, before_type, target, at, target_n, target_type, op, win, request);      \
  }

extern "C" {

LOCKFLIGHT_COUNTED_CALLS(, int)
#if MPI_VERSION >= 4
LOCKFLIGHT_COUNTED_CALLS(_c, MPI_Count)
#endif

LOCKFLIGHT_STAND_IN(Fetch_and_op)
(const void* from, void* before, MPI_Datatype type, int target, MPI_Aint at, MPI_Op op,
 MPI_Win win) {
  return noted(win, target, &mpi_calls::Fetch_and_op, from, before, type, target, at, op, win);
}

LOCKFLIGHT_STAND_IN(Compare_and_swap)
(const void* from, const void* expected, void* before, MPI_Datatype type, int target, MPI_Aint at,
 MPI_Win win) {
  return noted(win, target, &mpi_calls::Compare_and_swap, from, expected, before, type, target, at,
               win);
}

LOCKFLIGHT_STAND_IN(Win_flush)(int target, MPI_Win win) {
  preload::window* const ours = preload::find(win);
  return ours != nullptr ? ours->flush(target) : beneath().Win_flush(target, win);
}

LOCKFLIGHT_STAND_IN(Win_flush_all)(MPI_Win win) {
  preload::window* const ours = preload::find(win);
  return ours != nullptr ? ours->flush_all() : beneath().Win_flush_all(win);
}

}  // extern "C"
