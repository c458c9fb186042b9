/* Rank 0 keeps target 0 locked for so many seconds as the first argument says, while the others
 * lock the target that the second says, else that one. With a third argument, whatever it says,
 * rank 0's lock is shared. For LOCKFLIGHT_MPI_HANG; with 0 seconds the shortest program that
 * locks. */
#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const unsigned seconds = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
  const int other = argc > 2 ? atoi(argv[2]) : 0;
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  uint64_t* base = NULL;
  MPI_Win win;
  MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
  MPI_Win_set_name(win, "the table");
  if (rank == 0) MPI_Win_lock(argc > 3 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, 0, 0, win);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    sleep(seconds);
  } else {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, other, 0, win);
  }
  MPI_Win_unlock(rank == 0 ? 0 : other, win);
  MPI_Win_free(&win);
  MPI_Finalize();
  return 0;
}
