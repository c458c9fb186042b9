/* Locks and words on MPI, through the C interface: what mpirun starts with four ranks.
 *
 * usage: on_mpi NODES (how many nodes the launch is cut into; LOCKFLIGHT_MPI_NODES says the same)
 * Prints "all holds", or says what does not and ends the launch with 1. */
#include <lockflight/lockflight_mpi.h>

#include "on_ranks.h"

static void end_launch(void) { MPI_Abort(MPI_COMM_WORLD, 1); }

/* ---- joining ---- */

static void before_mpi_init(void) {
  lockflight_participant* me = NULL;
  REQUIRE(lockflight_join_mpi(MPI_COMM_WORLD, NULL, &me) == LOCKFLIGHT_UNAVAILABLE);
  REQUIRE(me == NULL && strstr(lockflight_last_error(), "not initialised") != NULL);
}

static void refuses_what_does_not_fit(void) {
  lockflight_participant* me = NULL;
  struct lockflight_config config = {0};
  REFUSED(lockflight_join_mpi(MPI_COMM_NULL, NULL, &me), LOCKFLIGHT_INVALID, "MPI_COMM_NULL");
  REFUSED(lockflight_join_mpi(MPI_COMM_WORLD, NULL, NULL), LOCKFLIGHT_INVALID, "me NULL");
  config.levels = "3x2";
  REFUSED(lockflight_join_mpi(MPI_COMM_WORLD, &config, &me), LOCKFLIGHT_INVALID,
          "levels '3x2' (accepted: levels that multiply to 4");
  config.levels = NULL;
  config.waiting = "nap";
  REFUSED(lockflight_join_mpi(MPI_COMM_WORLD, &config, &me), LOCKFLIGHT_INVALID, "nap");
  config.waiting = NULL;
  config.ranks = 4;
  REFUSED(lockflight_join_mpi(MPI_COMM_WORLD, &config, &me), LOCKFLIGHT_INVALID, "ranks 4");
  config.ranks = 0;
  config.threads = 1;
  REFUSED(lockflight_join_mpi(MPI_COMM_WORLD, &config, &me), LOCKFLIGHT_INVALID, "threads 1");
  REQUIRE(me == NULL);
  REFUSED(lockflight_leave(NULL), LOCKFLIGHT_INVALID, "me NULL");
}

static int leave_in_a_run(lockflight_participant* me, void* argument) {
  (void)argument;
  REFUSED(lockflight_leave(me), LOCKFLIGHT_INVALID, "a rank of lockflight_run");
  return LOCKFLIGHT_OK;
}

/* A waiter for a lock makes progress for a holder that uses its memory by MPI's own calls: both
 * MPIs need the target's progress, and without it the holder would stay there for ever. */
static void waiting_serves_mpi(lockflight_participant* me) {
  lockflight_mutex* mutex;
  int mine = 0;
  MPI_Win window;
  FINE(lockflight_mutex_create(me, NULL, &mutex));
  MPI_Win_create(&mine, sizeof mine, sizeof mine, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  if (rank == 1) FINE(lockflight_mutex_lock(mutex));
  FINE(lockflight_barrier(me));
  if (rank == 1) {
    for (int target = 0; target < ranks; ++target) {
      const int value = 1 + target;
      if (target == rank) continue;
      MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, window);
      MPI_Put(&value, 1, MPI_INT, target, 0, 1, MPI_INT, window);
      MPI_Win_unlock(target, window);
    }
  } else {
    FINE(lockflight_mutex_lock(mutex));
  }
  FINE(lockflight_mutex_unlock(mutex));
  MPI_Win_fence(0, window);
  REQUIRE(mine == (rank == 1 ? 0 : 1 + rank));
  MPI_Win_free(&window);
}

/* ---- participants ---- */

static void every_lock(const struct lockflight_config* config, int rounds) {
  lockflight_participant* me;
  FINE(lockflight_join_mpi(MPI_COMM_WORLD, config, &me));
  REQUIRE(lockflight_rank(me) == rank && lockflight_ranks(me) == ranks);
  locks_of_each_sort(me, rounds);
  waiting_serves_mpi(me);
  holds_and_leaves(me);
}

/* The old name of lockflight_join_mpi_fint, which stays for a version. */
static int join_by_the_old_name(MPI_Comm comm, lockflight_participant** me) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  return lockflight_join_mpi_f((int)MPI_Comm_c2f(comm), me, NULL);
#pragma GCC diagnostic pop
}

/* Two participants of one process, of communicators that do not last. */
static void halves(void) {
  MPI_Comm half;
  lockflight_participant *all, *some;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  FINE(lockflight_join_mpi(MPI_COMM_WORLD, NULL, &all));
  /* One half after the other: Open MPI 4.1 may give both the same memory otherwise (docs/mpi.md).
   */
  if (rank % 2 == 1) MPI_Barrier(MPI_COMM_WORLD);
  FINE(join_by_the_old_name(half, &some));
  if (rank % 2 == 0) MPI_Barrier(MPI_COMM_WORLD);
  MPI_Comm_free(&half);
  REQUIRE(lockflight_ranks(some) == ranks / 2 && lockflight_rank(some) == rank / 2);
  mutex_excludes(some, "rma-mcs", 20);
  mutex_excludes(all, "rma-mcs", 20);
  FINE(lockflight_leave(some));
  FINE(lockflight_leave(all));
}

int main(int argc, char** argv) {
  const int nodes = argc > 1 ? atoi(argv[1]) : 1;
  struct lockflight_config levels = {.levels = "2x2", .node_level = 1, .words_per_rank = 1 << 13};
  before_mpi_init();
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  REQUIRE(ranks == 4);
  if (nodes == 1) {
    struct lockflight_config threads = {.ranks = 1, .threads = 1};
    refuses_what_does_not_fit();
    FINE(lockflight_run(&threads, leave_in_a_run, NULL));
    every_lock(&levels, 200);
  }
  every_lock(NULL, nodes == 1 ? 200 : 20);
  halves();
  MPI_Finalize();
  lockflight_participant* me = NULL;
  REQUIRE(lockflight_join_mpi_fint(0, NULL, &me) == LOCKFLIGHT_UNAVAILABLE);
  REQUIRE(strstr(lockflight_last_error(), "finalised") != NULL);
  if (rank == 0) puts("all holds");
  return 0;
}
