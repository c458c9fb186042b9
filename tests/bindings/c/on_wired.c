/* Locks and words on a wired fabric, through the C interface: what a launcher starts with four
 * ranks. JOIN is lockflight_join_ucx or lockflight_join_libfabric.
 *
 * Prints "all holds", or says what does not and ends with 1. */
#include "on_ranks.h"

static void end_launch(void) { exit(1); }

static void refuses_what_does_not_fit(void) {
  lockflight_participant* me = NULL;
  struct lockflight_config config = {0};
  REFUSED(JOIN(NULL, NULL), LOCKFLIGHT_INVALID, "me NULL");
  config.ranks = 4;
  REFUSED(JOIN(&config, &me), LOCKFLIGHT_INVALID, "ranks 4");
  config.ranks = 0;
  config.threads = 1;
  REFUSED(JOIN(&config, &me), LOCKFLIGHT_INVALID, "threads 1");
  config.threads = 0;
  config.levels = "3x2"; /* found when all have joined */
  REFUSED(JOIN(&config, &me), LOCKFLIGHT_INVALID,
          "levels '3x2' (accepted: levels that multiply to 4");
  REQUIRE(me == NULL);
}

static void every_lock(const struct lockflight_config* config, int rounds) {
  lockflight_participant *me, *another = NULL;
  FINE(JOIN(config, &me));
  rank = lockflight_rank(me);
  ranks = lockflight_ranks(me);
  REQUIRE(ranks == 4);
  REFUSED(JOIN(config, &another), LOCKFLIGHT_INVALID, "a second participant");
  locks_of_each_sort(me, rounds);
  holds_and_leaves(me);
}

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? atoi(argv[1]) : 200;
  struct lockflight_config levels = {.levels = "2x2", .node_level = 1, .words_per_rank = 1 << 13};
  refuses_what_does_not_fit();
  every_lock(&levels, rounds);
  every_lock(NULL, rounds);
  if (rank == 0) puts("all holds");
  return 0;
}
