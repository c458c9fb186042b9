// How a call of MPI is stood in for.
#pragma once

#include "mpi_preload/beneath.hpp"

// LOCKFLIGHT_STAND_IN(Win_lock)(…) { … } defines PMPI_Win_lock and, as another name of it,
// MPI_Win_lock, as MPI's own library does (MPI-3.1, section 14.2).
#define LOCKFLIGHT_STAND_IN(call)                                   \
  extern decltype(PMPI_##call) MPI_##call                           \
      __attribute__((alias("PMPI_" #call), visibility("default"))); \
  __attribute__((visibility("default"))) int PMPI_##call
