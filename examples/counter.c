/* Four processes, a lock, and a counter in the memory that they share. Prints 4000. */
#include <inttypes.h>
#include <lockflight/lockflight.h>
#include <stdio.h>

static int count(lockflight_participant* me, void* unused) {
  (void)unused;
  lockflight_mutex* mutex;
  lockflight_words* counter;
  if (lockflight_mutex_create(me, NULL, &mutex) || lockflight_words_create(me, 1, &counter))
    return 1;

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
  return LOCKFLIGHT_OK;
}

int main(void) {
  const struct lockflight_config four = {.ranks = 4};
  if (lockflight_run(&four, count, NULL) == LOCKFLIGHT_OK) return 0;
  fprintf(stderr, "%s\n", lockflight_last_error());
  return 1;
}
