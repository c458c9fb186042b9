// Defines the functions that a program calls in place of MPI's own.
#pragma once

#include "mpi_preload/pmpi.hpp"

// LOCKFLIGHT_INTERPOSE(Win_lock)(…) { … } defines PMPI_Win_lock and, as another name of it,
// MPI_Win_lock, as MPI's own library does (MPI-3.1, section 14.2).
#define LOCKFLIGHT_INTERPOSE(call)                                  \
  extern decltype(PMPI_##call) MPI_##call                           \
      __attribute__((alias("PMPI_" #call), visibility("default"))); \
  __attribute__((visibility("default"))) int PMPI_##call

// The same for a call that is only MPI's own until a window is locked:
// LOCKFLIGHT_INTERPOSE_ONCE_LOCKED(Win_flush, (int rank, MPI_Win win), (rank, win)) { … }.
//
// A program that never locks pays the few instructions of the outer function. The body is a
// function of its own with the same arguments, so the outer one has no registers to save or move.
#define LOCKFLIGHT_INTERPOSE_ONCE_LOCKED(call, parameters, arguments)                       \
  static int once_locked_##call parameters;                                                 \
  LOCKFLIGHT_INTERPOSE(call) parameters {                                                   \
    if (const auto* const mpi = lockflight::mpi_preload::before_any_lock(); mpi != nullptr) \
        [[likely]]                                                                          \
      return mpi->call arguments;                                                           \
    return once_locked_##call arguments;                                                    \
  }                                                                                         \
  [[gnu::noinline]] int once_locked_##call parameters
