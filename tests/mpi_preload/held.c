/* Puts while all targets are locked, in two kinds of epochs: many, each with its flush, and then
 * ten epochs of one put. Each epoch ends with a flush of all targets before the unlock.
 */
#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

enum { many = 3000, short_epochs = 10 };

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int next = (rank + 1) % ranks;
  uint64_t* memory = NULL;
  MPI_Win win = MPI_WIN_NULL;
  MPI_Win other = MPI_WIN_NULL;
  MPI_Win_allocate(64, sizeof(*memory), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  MPI_Win_allocate(64, sizeof(*memory), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &other);
  MPI_Win_lock_all(0, other);
  for (int epoch = 0; epoch <= short_epochs; ++epoch) {
    MPI_Win_lock_all(0, win);
    for (int i = epoch == 0 ? many : 1; i > 0; --i) {
      const uint64_t value = 1;
      MPI_Put(&value, 1, MPI_UINT64_T, next, 0, 1, MPI_UINT64_T, win);
      MPI_Win_flush(next, win);
    }
    if (epoch == 0) {
      const uint64_t value = 2;
      MPI_Put(&value, 1, MPI_UINT64_T, next, 0, 1, MPI_UINT64_T, other);
    }
    MPI_Win_flush_all(win);
    MPI_Win_unlock_all(win);
    if (epoch == 0) MPI_Win_unlock_all(other);
  }
  MPI_Win_free(&other);
  MPI_Win_free(&win);
  MPI_Finalize();
  return 0;
}
