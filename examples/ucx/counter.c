/* A counter in rank 0's memory that all ranks of a launch add to, over UCX. Prints 1000 for each.
 *
 * Start it with `mpirun -n 4` of Open MPI, or with LOCKFLIGHT_RENDEZVOUS, LOCKFLIGHT_RANK and
 * LOCKFLIGHT_RANKS for each process; alone it is one rank. */
#include <inttypes.h>
#include <lockflight/lockflight.h>
#include <stdio.h>

int main(void) {
  lockflight_participant* me;
  lockflight_mutex* mutex;
  lockflight_words* counter;
  if (lockflight_join_ucx(NULL, &me) || lockflight_mutex_create(me, NULL, &mutex) ||
      lockflight_words_create(me, 1, &counter)) {
    fprintf(stderr, "%s\n", lockflight_last_error());
    return 1;
  }

  /* Over hosts any call may say that a rank is gone (LOCKFLIGHT_RANK_FAILED). */
  int code = LOCKFLIGHT_OK;
  uint64_t n = 0;
  for (int i = 0; i < 1000 && !code; ++i) {
    code = lockflight_mutex_lock(mutex);
    if (!code) code = lockflight_get_now(counter, 0, 0, &n);
    if (!code) code = lockflight_put_now(counter, 0, 0, n + 1);
    if (!code) code = lockflight_mutex_unlock(mutex);
  }

  if (!code) code = lockflight_barrier(me);
  if (!code) code = lockflight_get_now(counter, 0, 0, &n);
  if (code) fprintf(stderr, "%s\n", lockflight_last_error());
  if (!code && lockflight_rank(me) == 0) printf("%" PRIu64 "\n", n);
  lockflight_leave(me);
  return code != LOCKFLIGHT_OK;
}
