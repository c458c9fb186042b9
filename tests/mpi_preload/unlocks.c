/* Ten puts between fences; then, on the same window, unlocks after nothing, after a put, and after
 * a put that is flushed already: ten of each, on the next rank, exclusive and shared in turn. */
#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

enum { rounds = 10 };

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int next = (rank + 1) % ranks;
  uint64_t* memory = NULL;
  MPI_Win win = MPI_WIN_NULL;
  MPI_Win_allocate(64, sizeof(*memory), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
  for (int i = 0; i < rounds; ++i) {
    const uint64_t value = 1;
    MPI_Put(&value, 1, MPI_UINT64_T, next, 0, 1, MPI_UINT64_T, win);
  }
  MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
  for (int i = 0; i < rounds; ++i) {
    const int type = i % 2 == 0 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED;
    const uint64_t value = 1;
    MPI_Win_lock(type, next, 0, win);
    MPI_Win_unlock(next, win);

    MPI_Win_lock(type, next, 0, win);
    MPI_Put(&value, 1, MPI_UINT64_T, next, 0, 1, MPI_UINT64_T, win);
    MPI_Win_unlock(next, win);

    MPI_Win_lock(type, next, 0, win);
    MPI_Put(&value, 1, MPI_UINT64_T, next, 0, 1, MPI_UINT64_T, win);
    MPI_Win_flush(next, win);
    MPI_Win_unlock(next, win);
  }
  MPI_Win_free(&win);
  MPI_Finalize();
  return 0;
}
