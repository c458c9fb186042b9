/* A counter in rank 0's memory that all ranks of an MPI program add to. Prints 1000 for each. */
#include <inttypes.h>
#include <lockflight/lockflight_mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  lockflight_participant* me;
  lockflight_mutex* mutex;
  lockflight_words* counter;
  if (lockflight_join_mpi(MPI_COMM_WORLD, NULL, &me) || lockflight_mutex_create(me, NULL, &mutex) ||
      lockflight_words_create(me, 1, &counter)) {
    fprintf(stderr, "%s\n", lockflight_last_error());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }

  uint64_t n = 0;
  for (int i = 0; i < 1000; ++i) {
    lockflight_mutex_lock(mutex);
    lockflight_get_now(counter, 0, 0, &n);
    lockflight_put_now(counter, 0, 0, n + 1);
    lockflight_mutex_unlock(mutex);
  }

  lockflight_barrier(me);
  lockflight_get_now(counter, 0, 0, &n);
  if (lockflight_rank(me) == 0) printf("%" PRIu64 "\n", n);
  lockflight_leave(me);
  MPI_Finalize();
  return 0;
}
