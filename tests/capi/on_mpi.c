/* Locks and words on MPI, through the C interface: what mpirun starts with four ranks.
 *
 * usage: on_mpi NODES (how many nodes the launch is cut into; LOCKFLIGHT_MPI_NODES says the same)
 * Prints "all holds", or says what does not and ends the launch with 1. */
#include <lockflight/lockflight_mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks;

static void fail(int line, const char* what) {
  fprintf(stderr, "on_mpi.c:%d: rank %d: %s (last error: %s)\n", line, rank, what,
          lockflight_last_error());
  MPI_Abort(MPI_COMM_WORLD, 1);
}
#define REQUIRE(condition) ((condition) ? (void)0 : fail(__LINE__, #condition))
#define FINE(call) REQUIRE((call) == LOCKFLIGHT_OK)
#define REFUSED(call, code, words) \
  REQUIRE((call) == (code) && strstr(lockflight_last_error(), words) != NULL)

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

/* ---- locks ---- */

static void create_is_refused(lockflight_participant* me) {
  lockflight_mutex* mutex = NULL;
  lockflight_shared_mutex* shared = NULL;
  struct lockflight_lock_options options = {.name = "pthread-mutex"};
  /* Needs memory that is the process's own: not on MPI. */
  REFUSED(lockflight_mutex_create(me, &options, &mutex), LOCKFLIGHT_UNKNOWN,
          "lock 'pthread-mutex' (accepted: spin, spin-backoff, d-mcs, rma-mcs, ");
  REQUIRE(strstr(lockflight_last_error(), "pthread-rwlock") == NULL);
  options.name = "spin";
  REFUSED(lockflight_shared_mutex_create(me, &options, &shared), LOCKFLIGHT_WRONG_KIND, "'spin'");
  options.parameters = "x=1";
  REFUSED(lockflight_mutex_create(me, &options, &mutex), LOCKFLIGHT_UNKNOWN, "'x'");
  REQUIRE(mutex == NULL && shared == NULL);
}

/* Both words are equal whenever there is no writer. */
static void add_one(lockflight_words* pair, int home) {
  uint64_t a, b;
  FINE(lockflight_get_now(pair, home, 0, &a));
  FINE(lockflight_get_now(pair, home, 1, &b));
  REQUIRE(a == b);
  FINE(lockflight_put_now(pair, home, 0, a + 1));
  FINE(lockflight_put_now(pair, home, 1, a + 1));
}

static void mutex_excludes(lockflight_participant* me, const char* name, int rounds) {
  const int members = lockflight_ranks(me), home = members - 1;
  struct lockflight_lock_options options = {.name = name, .home = home};
  lockflight_mutex* mutex;
  lockflight_words* pair;
  FINE(lockflight_mutex_create(me, &options, &mutex));
  FINE(lockflight_words_create(me, 2, &pair));
  for (int i = 0; i < rounds; ++i) {
    int code = i % 2 == 0 ? lockflight_mutex_lock(mutex) : lockflight_mutex_try_lock(mutex);
    if (code == LOCKFLIGHT_BUSY) code = lockflight_mutex_lock(mutex);
    FINE(code);
    REFUSED(lockflight_mutex_lock(mutex), LOCKFLIGHT_HELD, "holds already");
    add_one(pair, home);
    FINE(lockflight_mutex_unlock(mutex));
  }
  REFUSED(lockflight_mutex_unlock(mutex), LOCKFLIGHT_NOT_HELD, "does not hold");
  FINE(lockflight_barrier(me));
  uint64_t sum;
  FINE(lockflight_get_now(pair, home, 1, &sum));
  REQUIRE(sum == (uint64_t)(members * rounds));
  FINE(lockflight_mutex_destroy(mutex));
}

static void shared_mutex_excludes(lockflight_participant* me, const char* name, int rounds) {
  struct lockflight_lock_options options = {.name = name};
  lockflight_shared_mutex* mutex;
  lockflight_words* pair;
  FINE(lockflight_shared_mutex_create(me, &options, &mutex));
  FINE(lockflight_words_create(me, 2, &pair));
  for (int i = 0; i < rounds; ++i) {
    if ((i + rank) % 4 == 0) {
      FINE(lockflight_shared_mutex_lock(mutex));
      add_one(pair, 0);
      FINE(lockflight_shared_mutex_unlock(mutex));
    } else {
      uint64_t seen[2];
      FINE(lockflight_shared_mutex_lock_shared(mutex));
      FINE(lockflight_get(pair, 0, 0, 2, seen));
      FINE(lockflight_flush(me));
      REQUIRE(seen[0] == seen[1]);
      FINE(lockflight_shared_mutex_unlock_shared(mutex));
    }
  }
  FINE(lockflight_barrier(me));
  uint64_t sum;
  FINE(lockflight_get_now(pair, 0, 1, &sum));
  REQUIRE(sum == (uint64_t)(ranks * rounds / 4));
}

static void does_not_go_up_and_down(lockflight_participant* me, const char* name) {
  struct lockflight_lock_options options = {.name = name};
  lockflight_shared_mutex* mutex;
  FINE(lockflight_shared_mutex_create(me, &options, &mutex));
  REFUSED(lockflight_shared_mutex_lock_upgrade(mutex), LOCKFLIGHT_WRONG_KIND, name);
  FINE(lockflight_shared_mutex_lock_shared(mutex));
  REFUSED(lockflight_shared_mutex_try_unlock_shared_and_lock(mutex), LOCKFLIGHT_WRONG_KIND, name);
  FINE(lockflight_shared_mutex_unlock_shared(mutex));
}

/* From reading to writing and back, without a writer in between. */
static void goes_up_and_down(lockflight_participant* me, int rounds) {
  lockflight_shared_mutex* mutex;
  lockflight_words* pair;
  uint64_t before, after, mine = 0, all = 0;
  FINE(lockflight_shared_mutex_create(me, NULL, &mutex));
  FINE(lockflight_words_create(me, 3, &pair)); /* the third one: how often its rank has written */
  REFUSED(lockflight_shared_mutex_unlock_upgrade(mutex), LOCKFLIGHT_NOT_HELD, "does not hold");
  for (int i = 0; i < rounds; ++i) {
    if ((i + rank) % 2 == 0) {
      FINE(lockflight_shared_mutex_lock_upgrade(mutex));
      FINE(lockflight_get_now(pair, 0, 0, &before));
      FINE(lockflight_shared_mutex_unlock_upgrade_and_lock(mutex));
    } else {
      int code;
      FINE(lockflight_shared_mutex_lock_shared(mutex));
      FINE(lockflight_get_now(pair, 0, 0, &before));
      code = lockflight_shared_mutex_try_unlock_shared_and_lock(mutex);
      if (code == LOCKFLIGHT_BUSY) {
        FINE(lockflight_shared_mutex_unlock_shared(mutex));
        continue;
      }
      FINE(code);
    }
    FINE(lockflight_get_now(pair, 0, 1, &after));
    REQUIRE(after == before);
    add_one(pair, 0);
    ++mine;
    if (i % 4 < 2) {
      FINE(lockflight_shared_mutex_unlock_and_lock_upgrade(mutex));
      FINE(lockflight_shared_mutex_unlock_upgrade_and_lock_shared(mutex));
    } else {
      FINE(lockflight_shared_mutex_unlock_and_lock_shared(mutex));
    }
    FINE(lockflight_get_now(pair, 0, 1, &after));
    REQUIRE(after == before + 1);
    FINE(lockflight_shared_mutex_unlock_shared(mutex));
  }
  FINE(lockflight_put_now(pair, lockflight_rank(me), 2, mine));
  FINE(lockflight_barrier(me));
  for (int of = 0; of < ranks; ++of) {
    FINE(lockflight_get_now(pair, of, 2, &mine));
    all += mine;
  }
  FINE(lockflight_get_now(pair, 0, 1, &after));
  REQUIRE(after == all);
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
  static const char* const mutexes[] = {"spin", "spin-backoff", "d-mcs", "rma-mcs", "alock"};
  static const char* const shared[] = {"fompi-rw",  "fompi-rw-backoff", "rma-rw",
                                       "mcs-rw-rp", "mcs-rw-wp",        "mcs-rw-fair"};
  lockflight_participant* me;
  lockflight_mutex* held;
  FINE(lockflight_join_mpi(MPI_COMM_WORLD, config, &me));
  REQUIRE(lockflight_rank(me) == rank && lockflight_ranks(me) == ranks);
  create_is_refused(me);
  for (size_t i = 0; i < sizeof mutexes / sizeof *mutexes; ++i)
    mutex_excludes(me, mutexes[i], rounds);
  for (size_t i = 0; i < sizeof shared / sizeof *shared; ++i)
    shared_mutex_excludes(me, shared[i], rounds);
  for (size_t i = 0; i < sizeof shared / sizeof *shared; ++i)
    does_not_go_up_and_down(me, shared[i]);
  goes_up_and_down(me, rounds);
  waiting_serves_mpi(me);
  FINE(lockflight_mutex_create(me, NULL, &held));
  FINE(lockflight_mutex_lock(held));
  REFUSED(lockflight_leave(me), LOCKFLIGHT_HELD, "flight");
  FINE(lockflight_mutex_unlock(held));
  FINE(lockflight_leave(me));
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
  FINE(lockflight_join_mpi(half, NULL, &some));
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
  REQUIRE(lockflight_join_mpi_f(0, &me, NULL) == LOCKFLIGHT_UNAVAILABLE);
  REQUIRE(strstr(lockflight_last_error(), "finalised") != NULL);
  if (rank == 0) puts("all holds");
  return 0;
}
