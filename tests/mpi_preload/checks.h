/* What several programs of these tests share. */
#pragma once

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>

/* Ends the launch, with a line, if a condition does not hold. The program has its `rank`. */
#define REQUIRE(holds)                                                                         \
  do {                                                                                         \
    if (!(holds)) {                                                                            \
      fprintf(stderr, "rank %d: %s:%d: %s does not hold\n", rank, __FILE__, __LINE__, #holds); \
      MPI_Abort(MPI_COMM_WORLD, 1);                                                            \
    }                                                                                          \
  } while (0)

/* Adds one to the window's first word at its first rank, by a get and a put under its lock. */
static inline void add_one(MPI_Win win) {
  uint64_t now = 0;
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
  MPI_Get(&now, 1, MPI_UINT64_T, 0, 0, 1, MPI_UINT64_T, win);
  MPI_Win_flush(0, win);
  ++now;
  MPI_Put(&now, 1, MPI_UINT64_T, 0, 0, 1, MPI_UINT64_T, win);
  MPI_Win_unlock(0, win);
}
