/* A reader-writer lock with a time limit in a SHMEM program, which has mutexes without one: the two
 * words in PE 0's symmetric memory are equal whenever the lock is free. Prints 1000 for each PE. */
#include <lockflight/lockflight.h>
#include <shmem.h>
#include <stdio.h>

static void check(int code) {
  if (code == LOCKFLIGHT_OK) return;
  fprintf(stderr, "%s\n", lockflight_last_error());
  shmem_global_exit(1);
}

int main(void) {
  shmem_init();
  long* const counts = shmem_calloc(2, sizeof(long));
  lockflight_participant* me;
  lockflight_shared_mutex* lock;
  check(lockflight_join_oshmem(NULL, &me));
  check(lockflight_shared_mutex_create(me, NULL, &lock));

  for (int i = 0; i < 1000; ++i) {
    check(lockflight_shared_mutex_lock_shared(lock));
    if (shmem_long_g(&counts[0], 0) != shmem_long_g(&counts[1], 0)) shmem_global_exit(1);
    check(lockflight_shared_mutex_unlock_shared(lock));

    /* A writer that has waited a millisecond gives up and tries again. */
    int code;
    do code = lockflight_shared_mutex_try_lock_for(lock, 1000000);
    while (code == LOCKFLIGHT_BUSY);
    check(code);
    const long next = shmem_long_g(&counts[0], 0) + 1;
    shmem_long_p(&counts[0], next, 0);
    shmem_long_p(&counts[1], next, 0);
    shmem_quiet(); /* before the next holder reads */
    check(lockflight_shared_mutex_unlock(lock));
  }

  check(lockflight_barrier(me));
  if (shmem_my_pe() == 0) printf("%ld\n", counts[0]);
  check(lockflight_leave(me));
  shmem_free(counts);
  shmem_finalize();
  return 0;
}
