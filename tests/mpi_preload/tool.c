/* A profiling library of the usual kind: it defines MPI_X, counts the calls, and passes them on to
 * PMPI_X. Each process says its counts on standard error when it finalises MPI. */
#include <mpi.h>
#include <stdio.h>

static int locks, unlocks, puts_, windows;
/* Calls of the kinds that the drop-in makes for itself, too: a tool sees the program's alone. */
static int questions, reductions;

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
int MPI_Comm_size(MPI_Comm all, int* size) {
  ++questions;
  return PMPI_Comm_size(all, size);
}
int MPI_Comm_rank(MPI_Comm all, int* rank) {
  ++questions;
  return PMPI_Comm_rank(all, rank);
}
int MPI_Iallreduce(const void* from, void* to, int n, MPI_Datatype type, MPI_Op op, MPI_Comm all,
                   MPI_Request* request) {
  ++reductions;
  return PMPI_Iallreduce(from, to, n, type, op, all, request);
}
int MPI_Finalize(void) {
  fprintf(stderr, "tool: %d windows, %d locks, %d unlocks, %d puts, %d questions, %d reductions\n",
          windows, locks, unlocks, puts_, questions, reductions);
  return PMPI_Finalize();
}
