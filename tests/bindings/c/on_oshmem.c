/* Locks and words on OpenSHMEM, through the C interface: what a launcher starts with four PEs.
 *
 * Prints "all holds", or says what does not and ends the launch with 1. */
#include <shmem.h>

#include "on_ranks.h"

static void end_launch(void) { shmem_global_exit(1); }

static void refuses_what_does_not_fit(void) {
  lockflight_participant* me = NULL;
  struct lockflight_config config = {0};
  REFUSED(lockflight_join_oshmem(NULL, NULL), LOCKFLIGHT_INVALID, "me NULL");
  config.ranks = 4;
  REFUSED(lockflight_join_oshmem(&config, &me), LOCKFLIGHT_INVALID, "ranks 4");
  config.ranks = 0;
  config.levels = "3x2";
  REFUSED(lockflight_join_oshmem(&config, &me), LOCKFLIGHT_INVALID,
          "levels '3x2' (accepted: levels that multiply to 4");
  REQUIRE(me == NULL);
}

/* The old name of lockflight_join_oshmem, which stays for a version. */
static void joins_by_the_old_name(void) {
  lockflight_participant* me = NULL;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  REFUSED(lockflight_join_shmem(NULL, NULL), LOCKFLIGHT_INVALID, "me NULL");
  FINE(lockflight_join_shmem(&me, NULL));
#pragma GCC diagnostic pop
  mutex_excludes(me, "d-mcs", 20);
  FINE(lockflight_leave(me));
}

int main(void) {
  lockflight_participant* me;
  shmem_init();
  rank = shmem_my_pe();
  ranks = shmem_n_pes();
  REQUIRE(ranks == 4);
  refuses_what_does_not_fit();
  FINE(lockflight_join_oshmem(NULL, &me));
  REQUIRE(lockflight_rank(me) == rank && lockflight_ranks(me) == ranks);
  locks_of_each_sort(me, 20);
  holds_and_leaves(me);
  joins_by_the_old_name();
  if (rank == 0) puts("all holds");
  shmem_finalize();
  return 0;
}
