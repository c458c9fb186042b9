/* SHMEM's own lock, to compare with (`./dev perf-ucx`): all PEs take and give back one lock with
 * nothing inside, as `bench --workload ecsb` does, for so many seconds. PE 0 prints how often a
 * second, all PEs together.
 *
 * usage: shmem_lock SECONDS
 */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static long lock = 0;
static long total = 0;

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

int main(int argc, char** argv) {
  const double wanted = argc == 2 ? atof(argv[1]) : 0;
  if (wanted <= 0) {
    fprintf(stderr, "usage: shmem_lock SECONDS\n");
    return 2;
  }
  shmem_init();
  shmem_barrier_all();
  const double begun = seconds();
  long pairs = 0;
  do {
    shmem_set_lock(&lock);
    shmem_clear_lock(&lock);
    ++pairs;
  } while (seconds() < begun + wanted);
  shmem_long_atomic_add(&total, pairs, 0);
  shmem_barrier_all();
  if (shmem_my_pe() == 0) printf("%.0f\n", (double)total / (seconds() - begun));
  shmem_finalize();
  return 0;
}
