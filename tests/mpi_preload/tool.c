/* A profiling library of the usual kind: it defines MPI_X, counts the calls, and passes them on to
 * PMPI_X. Each process says its counts on standard error when it finalises MPI. */
#include <mpi.h>
#include <stdio.h>

static int locks, unlocks, puts_, windows;

int MPI_Win_lock(int type, int target, int assertion, MPI_Win win) {
  ++locks;
  return PMPI_Win_lock(type, target, assertion, win);
}
int MPI_Win_unlock(int target, MPI_Win win) {
  ++unlocks;
  return PMPI_Win_unlock(target, win);
}
int MPI_Put(const void* from, int n, MPI_Datatype type, int target, MPI_Aint at, int target_n,
            MPI_Datatype target_type, MPI_Win win) {
  ++puts_;
  return PMPI_Put(from, n, type, target, at, target_n, target_type, win);
}
int MPI_Win_allocate(MPI_Aint size, int unit, MPI_Info info, MPI_Comm all, void* base,
                     MPI_Win* win) {
  ++windows;
  return PMPI_Win_allocate(size, unit, info, all, base, win);
}
int MPI_Finalize(void) {
  fprintf(stderr, "tool: %d windows, %d locks, %d unlocks, %d puts\n", windows, locks, unlocks,
          puts_);
  return PMPI_Finalize();
}
