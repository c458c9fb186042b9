/* What the tests in C of the fabrics share whose ranks something else starts. A file that includes
 * it has end_launch(), which ends the other ranks too. */
#ifndef LOCKFLIGHT_TESTS_CAPI_ON_RANKS_H
#define LOCKFLIGHT_TESTS_CAPI_ON_RANKS_H

#include <lockflight/lockflight.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks;

static void end_launch(void);

static void fail(const char* file, int line, const char* what) {
  fprintf(stderr, "%s:%d: rank %d: %s (last error: %s)\n", file, line, rank, what,
          lockflight_last_error());
  end_launch();
}
#define REQUIRE(condition) ((condition) ? (void)0 : fail(__FILE__, __LINE__, #condition))
#define FINE(call) REQUIRE((call) == LOCKFLIGHT_OK)
#define REFUSED(call, code, words) \
  REQUIRE((call) == (code) && strstr(lockflight_last_error(), words) != NULL)

static void create_is_refused(lockflight_participant* me) {
  lockflight_mutex* mutex = NULL;
  lockflight_shared_mutex* shared = NULL;
  struct lockflight_lock_options options = {.name = "pthread-mutex"};
  /* Needs memory that is the process's own: not here. */
  REFUSED(lockflight_mutex_create(me, &options, &mutex), LOCKFLIGHT_UNKNOWN,
          "lock 'pthread-mutex' (accepted: spin, ");
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

static void locks_of_each_sort(lockflight_participant* me, int rounds) {
  static const char* const mutexes[] = {"spin", "spin-backoff", "d-mcs", "rma-mcs", "alock"};
  static const char* const shared[] = {"fompi-rw",  "fompi-rw-backoff", "rma-rw",
                                       "mcs-rw-rp", "mcs-rw-wp",        "mcs-rw-fair"};
  create_is_refused(me);
  for (size_t i = 0; i < sizeof mutexes / sizeof *mutexes; ++i)
    mutex_excludes(me, mutexes[i], rounds);
  for (size_t i = 0; i < sizeof shared / sizeof *shared; ++i)
    shared_mutex_excludes(me, shared[i], rounds);
  for (size_t i = 0; i < sizeof shared / sizeof *shared; ++i)
    does_not_go_up_and_down(me, shared[i]);
  goes_up_and_down(me, rounds);
}

static void holds_and_leaves(lockflight_participant* me) {
  lockflight_mutex* held;
  FINE(lockflight_mutex_create(me, NULL, &held));
  FINE(lockflight_mutex_lock(held));
  REFUSED(lockflight_leave(me), LOCKFLIGHT_HELD, "flight");
  FINE(lockflight_mutex_unlock(held));
  FINE(lockflight_leave(me));
}

#endif
