/* Any number of these programs, started by anything, count in a file of which one of them at a time
 * has the lock. Kill one while it holds the lock: the next one repairs. Prints the count. */
#include <inttypes.h>
#include <lockflight/lockflight.h>
#include <stdio.h>

static int refused(const char* what) {
  fprintf(stderr, "%s: %s\n", what, lockflight_last_error());
  return 1;
}

/* Returns 0 if there is no count yet, or half of one. */
static unsigned long read_count(const char* path) {
  unsigned long n = 0;
  FILE* const file = fopen(path, "r");
  if (!file) return 0;
  if (fscanf(file, "%lu", &n) != 1) n = 0;
  fclose(file);
  return n;
}

int main(int argc, char** argv) {
  const char* const path = argc > 1 ? argv[1] : "count.txt";
  lockflight_domain* domain;
  lockflight_named* lock;
  if (lockflight_domain_open("examples", NULL, &domain)) return refused("domain");
  if (lockflight_named_create(domain, "count", NULL, &lock)) return refused("lock");

  const int code = lockflight_named_lock(lock);
  if (code == LOCKFLIGHT_OWNER_DIED) {
    /* The lock is held, and a count that is half written reads as 0. */
    fprintf(stderr, "%s\n", lockflight_last_error());
    lockflight_named_mark_consistent(lock);
  } else if (code != LOCKFLIGHT_OK) {
    return refused("acquire");
  }

  const unsigned long n = read_count(path) + 1;
  FILE* const file = fopen(path, "w");
  if (file) {
    fprintf(file, "%lu\n", n);
    fclose(file);
  }
  uint64_t token = 0;
  lockflight_named_token(lock, &token);
  lockflight_named_unlock(lock);
  printf("%lu, token %" PRIu64 "\n", n, token);

  lockflight_named_destroy(lock);
  lockflight_domain_close(domain);
  return file ? 0 : 1;
}
