/* A table that many read and few change: a shared mutex.
 *
 * Rank 0 changes all of it now and then; the others see every change as a whole. */
#include <lockflight/lockflight.h>
#include <stdio.h>

enum { entries = 16, versions = 100 };

static int require(int code) {
  if (code != LOCKFLIGHT_OK) fprintf(stderr, "%s\n", lockflight_last_error());
  return code;
}

static int write_table(lockflight_participant* me, lockflight_shared_mutex* mutex,
                       lockflight_words* table) {
  for (uint64_t version = 1; version <= versions; ++version) {
    uint64_t values[entries];
    for (int i = 0; i < entries; ++i) values[i] = version;
    if (require(lockflight_shared_mutex_lock(mutex))) return 1;
    lockflight_put(table, 0, 0, entries, values);
    lockflight_flush(me); /* unlock passes on what is complete, and does not wait for the rest */
    lockflight_shared_mutex_unlock(mutex);
  }
  return LOCKFLIGHT_OK;
}

static int read_table(lockflight_participant* me, lockflight_shared_mutex* mutex,
                      lockflight_words* table) {
  uint64_t seen[entries] = {0};
  long reads = 0;
  for (; seen[0] < versions; ++reads) {
    if (require(lockflight_shared_mutex_lock_shared(mutex))) return 1;
    lockflight_get(table, 0, 0, entries, seen);
    lockflight_flush(me); /* the values are there now */
    lockflight_shared_mutex_unlock_shared(mutex);
    for (int i = 1; i < entries; ++i)
      if (seen[i] != seen[0]) return 2; /* half of a change: the run fails */
  }
  if (lockflight_rank(me) == 1) printf("rank 1 read the table %ld times, always whole\n", reads);
  return LOCKFLIGHT_OK;
}

static int work(lockflight_participant* me, void* unused) {
  (void)unused;
  lockflight_shared_mutex* mutex;
  lockflight_words* table;
  /* A lock and a parameter by name; NULL would be the library's choice. */
  const struct lockflight_lock_options options = {.name = "rma-rw", .parameters = "T_R=100"};
  if (require(lockflight_shared_mutex_create(me, &options, &mutex)) ||
      require(lockflight_words_create(me, entries, &table)))
    return 1;
  lockflight_barrier(me);
  return lockflight_rank(me) == 0 ? write_table(me, mutex, table) : read_table(me, mutex, table);
}

int main(void) {
  const struct lockflight_config four = {.ranks = 4};
  return require(lockflight_run(&four, work, NULL)) == LOCKFLIGHT_OK ? 0 : 1;
}
