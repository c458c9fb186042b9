// Defines the functions that a program calls in place of MPI's own.
//
// MPI's profiling interface has each call twice: a tool defines MPI_X, and calls PMPI_X (MPI-3.1,
// section 14.2). The drop-in does its work in PMPI_X. Its MPI_X goes to the next MPI_X behind it:
// that of a tool, if there is one, whose PMPI_X is the drop-in's; else the drop-in's own PMPI_X.
#pragma once

#include "mpi_preload/pmpi.hpp"

// LOCKFLIGHT_INTERPOSE(Win_lock, (int type, …), (type, …)) { … }
#define LOCKFLIGHT_INTERPOSE(call, parameters, arguments)                       \
  static int work_of_##call parameters;                                         \
  __attribute__((visibility("default"))) int MPI_##call parameters {            \
    const auto& behind = lockflight::mpi_preload::behind();                     \
    if (behind.next.call != behind.own.call) return behind.next.call arguments; \
    return work_of_##call arguments;                                            \
  }                                                                             \
  __attribute__((visibility("default"))) int PMPI_##call parameters {           \
    return work_of_##call arguments;                                            \
  }                                                                             \
  static int work_of_##call parameters

// The same for a call that is only MPI's own until a window is locked. A program that never locks
// pays the few instructions of the outer function. The later steps are in functions of their own
// with the same arguments, so that the outer function has no registers to save or move.
//
// `quickly` is a statement that returns where the call is for a window that was found alone
// (windows.hpp) and there is next to nothing to do; else it does nothing.
#define LOCKFLIGHT_INTERPOSE_ONCE_LOCKED(call, parameters, arguments, quickly)              \
  static int once_locked_##call parameters;                                                 \
  [[gnu::noinline]] static int behind_##call parameters {                                   \
    const auto& behind = lockflight::mpi_preload::behind();                                 \
    if (behind.next.call != behind.own.call) return behind.next.call arguments;             \
    return once_locked_##call arguments;                                                    \
  }                                                                                         \
  [[gnu::noinline]] static int past_tools_##call parameters {                               \
    quickly;                                                                                \
    return behind_##call arguments;                                                         \
  }                                                                                         \
  [[gnu::noinline]] static int quick_##call parameters {                                    \
    quickly;                                                                                \
    return once_locked_##call arguments;                                                    \
  }                                                                                         \
  __attribute__((visibility("default"))) int MPI_##call parameters {                        \
    if (const auto* const mpi = lockflight::mpi_preload::before_any_lock(); mpi != nullptr) \
        [[likely]]                                                                          \
      return mpi->next.call arguments;                                                      \
    return past_tools_##call arguments;                                                     \
  }                                                                                         \
  __attribute__((visibility("default"))) int PMPI_##call parameters {                       \
    if (const auto* const mpi = lockflight::mpi_preload::before_any_lock(); mpi != nullptr) \
        [[likely]]                                                                          \
      return mpi->own.call arguments;                                                       \
    return quick_##call arguments;                                                          \
  }                                                                                         \
  [[gnu::noinline]] int once_locked_##call parameters
