/* Patterns of programs that run on an MPI alone, and so have to run under the drop-in. Prints "all
 * holds".
 *
 * usage: patterns PATTERN
 *
 *   poll-lock      rank 0 polls its own window by lock, load and unlock, while rank 1 first reads
 *                  another window of rank 0, and then writes the flag
 *   poll-same      the same, and rank 1 accumulates into the very window that is polled
 *   poll-lock-all  rank 0 polls by lock_all, MPI_Win_sync, load, unlock_all
 *   poll-slowly    rank 0 polls once a millisecond
 *   threads        a thread's unlock flushes a target that computes; another thread locks another
 *                  window, which is what that target waits for
 *   spawn          parents and children make a window together; the children end before the parents
 *   intercomm      halves of the launch make a window on a communicator that was two
 *   assertions     assertions and lock types that do not exist, through MPI_ERRORS_RETURN, and a
 *                  window that is not freed
 *   not-locked     a put to a target that is not locked, after locks: MPI_ERR_RMA_SYNC
 *   held           so many puts under a lock_all that these calls go to the MPI unchecked, and what
 *                  other windows and later epochs need is checked again
 *   deletion       an attribute's deletion locks the window that is being freed
 *   circle-all     lock_all behind an exclusive lock that waits for a rank which waits for us
 *   circle-one     an exclusive lock behind a lock_all that waits for a rank which waits for us
 *   circle-later   the same after so many exclusive locks that the window favours these
 *   writer         rank 1 locks a target exclusively, which the other ranks lock shared again and
 *                  again, so that some of them holds it at nearly every moment
 */
#include <mpi.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int rank, ranks;

static void require(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "rank %d: %s\n", rank, what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

/* MPICH 4.0 sends puts to the wrong place if the size is no multiple of 64 bytes. */
static MPI_Win made(MPI_Comm all, int64_t** base) {
  MPI_Win win;
  MPI_Win_allocate(64, sizeof(int64_t), MPI_INFO_NULL, all, base, &win);
  **base = 0;
  MPI_Barrier(all);
  return win;
}

static void pass_milliseconds(double ms) {
  const double end = MPI_Wtime() + ms * 1e-3;
  while (MPI_Wtime() < end) {
  }
}

/* ---- progress ---- */

enum way { by_lock, by_lock_all };

static void poll(enum way how, int same_window, int slowly) {
  int64_t *flag, *other;
  MPI_Win flags = made(MPI_COMM_WORLD, &flag);
  MPI_Win others = made(MPI_COMM_WORLD, &other);
  if (rank == 0) {
    for (int64_t seen = 0; seen == 0;) {
      if (how == by_lock) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, flags);
        seen = *(volatile int64_t*)flag;
        MPI_Win_unlock(0, flags);
      } else {
        MPI_Win_lock_all(0, flags);
        MPI_Win_sync(flags);
        seen = *(volatile int64_t*)flag;
        MPI_Win_unlock_all(flags);
      }
      if (slowly) usleep(1000);
    }
  } else if (rank == 1) {
    int64_t value = 0;
    const int64_t one = 1;
    pass_milliseconds(50);
    if (!same_window) {
      MPI_Request request;
      MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, others);
      MPI_Rget(&value, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, others, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      MPI_Accumulate(&one, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, MPI_SUM, others);
      MPI_Win_unlock(0, others);
    }
    MPI_Win_lock(how == by_lock ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, 0, 0, flags);
    MPI_Accumulate(&one, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, MPI_REPLACE, flags);
    MPI_Win_unlock(0, flags);
  }
  MPI_Win_free(&flags);
  MPI_Win_free(&others);
}

/* ---- threads ---- */

static MPI_Win second;

/* Comes 100 ms after the other thread has begun to flush, and is what rank 1 waits for. */
static void* other_thread(void* nothing) {
  (void)nothing;
  pass_milliseconds(100);
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, second);
  MPI_Win_unlock(0, second);
  const int there = 1;
  MPI_Send(&there, 1, MPI_INT, 1, 7, MPI_COMM_WORLD);
  return NULL;
}

static void threads(int level) {
  if (level < MPI_THREAD_MULTIPLE) return;
  int64_t *a, *b;
  MPI_Win first = made(MPI_COMM_WORLD, &a);
  second = made(MPI_COMM_WORLD, &b);
  if (rank == 0) {
    pthread_t thread;
    pthread_create(&thread, NULL, other_thread, NULL);
    const int64_t one = 1;
    MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, first);
    MPI_Accumulate(&one, 1, MPI_INT64_T, 1, 0, 1, MPI_INT64_T, MPI_SUM, first);
    MPI_Win_unlock(1, first);
    pthread_join(thread, NULL);
  } else if (rank == 1) {
    /* Computes, and looks now and then, until the message is there: each look is progress for at
     * most one step of the flush. */
    pass_milliseconds(1000);
    int there = 0;
    MPI_Recv(&there, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  MPI_Win_free(&first);
  MPI_Win_free(&second);
}

/* ---- processes of several launches ---- */

static void use(MPI_Comm all) {
  int64_t* base;
  int members = 0;
  MPI_Comm_size(all, &members);
  MPI_Win win = made(all, &base);
  const int64_t one = 1;
  for (int i = 0; i < 10; ++i) {
    int64_t now = 0;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    MPI_Get(&now, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, win);
    MPI_Win_flush(0, win);
    now += one;
    MPI_Put(&now, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, win);
    MPI_Win_unlock(0, win);
  }
  MPI_Barrier(all);
  int64_t sum = 0;
  MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
  MPI_Get(&sum, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, win);
  MPI_Win_unlock(0, win);
  require(sum == 10 * members, "increments are lost");
  MPI_Win_free(&win);
}

static void with_children(char** argv) {
  MPI_Comm parents, children, all;
  MPI_Comm_get_parent(&parents);
  if (parents == MPI_COMM_NULL) {
    char* arguments[] = {"spawn", NULL};
    MPI_Comm_spawn(argv[0], arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children,
                   MPI_ERRCODES_IGNORE);
    MPI_Intercomm_merge(children, 0, &all);
  } else {
    children = parents;
    MPI_Intercomm_merge(parents, 1, &all);
  }
  use(all);
  use(MPI_COMM_WORLD);
  MPI_Comm_free(&all);
  MPI_Comm_disconnect(&children);
  if (parents != MPI_COMM_NULL) {
    MPI_Finalize();
    exit(0);
  }
  use(MPI_COMM_WORLD);
}

static void of_halves(void) {
  MPI_Comm half, between, all;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 3, &between);
  MPI_Intercomm_merge(between, rank % 2, &all);
  use(all);
  use(half);
  MPI_Comm_free(&all);
  MPI_Comm_free(&between);
  MPI_Comm_free(&half);
}

/* ---- errors ---- */

static int class_of(int code) {
  int class = MPI_SUCCESS;
  MPI_Error_class(code, &class);
  return class;
}

static void assertions(void) {
  int64_t* base;
  MPI_Win win = made(MPI_COMM_WORLD, &base);
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  /* Each MPI has a class of its own for it. */
  const int no_assertion = class_of(MPI_Win_lock(MPI_LOCK_SHARED, 0, MPI_MODE_NOPUT, win));
  require(no_assertion == MPI_ERR_ASSERT || no_assertion == MPI_ERR_ARG,
          "an assertion that is none of a lock is accepted");
  require(class_of(MPI_Win_lock_all(MPI_MODE_NOPRECEDE, win)) == no_assertion,
          "an assertion that is none of lock_all is accepted");
  require(MPI_Win_lock(12345, 0, 0, win) != 12345, "a lock of no type is accepted");
  /* The window is not freed. */
}

static void not_locked(void) {
  int64_t* base;
  MPI_Win win = made(MPI_COMM_WORLD, &base);
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  const int64_t one = 1;
  MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
  MPI_Win_unlock(0, win);
  require(class_of(MPI_Put(&one, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, win)) == MPI_ERR_RMA_SYNC,
          "a put without a lock is accepted");
  MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
  require(MPI_Put(&one, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, win) == MPI_SUCCESS,
          "a put under a lock is refused");
  MPI_Win_unlock(0, win);
  MPI_Win_fence(0, win);
  require(MPI_Put(&one, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, win) == MPI_SUCCESS,
          "a put between fences is refused");
  MPI_Win_fence(0, win);
  MPI_Win_free(&win);
}

/* Puts to the next rank until the drop-in leaves them to the MPI: `value` is what stays. */
static void put_often(MPI_Win win, int64_t value) {
  const int often = 5000;
  const int next = (rank + 1) % ranks;
  for (int64_t i = often; i >= 0; --i) {
    const int64_t now = value + i;
    require(MPI_Put(&now, 1, MPI_INT64_T, next, 0, 1, MPI_INT64_T, win) == MPI_SUCCESS,
            "a put under lock_all is refused");
    if (i > 0) MPI_Win_flush(next, win);
  }
}

static int put_error(MPI_Win win) {
  const int64_t value = -1;
  return class_of(MPI_Put(&value, 1, MPI_INT64_T, rank, 0, 1, MPI_INT64_T, win));
}

/* The value that the last rank has put here is there after its unlock. */
static void require_value(const int64_t* at, MPI_Win win, int64_t value) {
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
  require(*(const volatile int64_t*)at == value, "an operation is not complete after its epoch");
  MPI_Win_unlock(rank, win);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void held(void) {
  int64_t *at, *other_at, *fenced_at;
  MPI_Win win = made(MPI_COMM_WORLD, &at);
  MPI_Win other = made(MPI_COMM_WORLD, &other_at);
  MPI_Win fenced = made(MPI_COMM_WORLD, &fenced_at);
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  MPI_Win_set_errhandler(other, MPI_ERRORS_RETURN);
  const int next = (rank + 1) % ranks;

  MPI_Win_lock_all(0, win);
  put_often(win, 1);
  /* A window that was never locked is between fences meanwhile. */
  MPI_Win_fence(0, fenced);
  require(put_error(fenced) == MPI_SUCCESS, "a put between fences is refused");
  MPI_Win_fence(0, fenced);
  MPI_Win_unlock_all(win);
  require_value(at, win, 1);
  require(put_error(win) == MPI_ERR_RMA_SYNC, "a put after unlock_all is accepted");

  /* Another window is locked in the middle of it. */
  MPI_Win_lock_all(0, win);
  put_often(win, 2);
  MPI_Win_lock(MPI_LOCK_SHARED, next, 0, other);
  require(put_error(other) == MPI_ERR_RMA_SYNC, "a put to a target that is not locked is accepted");
  const int64_t value = 3;
  MPI_Put(&value, 1, MPI_INT64_T, next, 0, 1, MPI_INT64_T, other);
  MPI_Win_unlock(next, other);
  require(put_error(other) == MPI_ERR_RMA_SYNC, "a put after unlock is accepted");
  MPI_Win_unlock_all(win);
  require_value(at, win, 2);
  require_value(other_at, other, 3);

  /* A window whose epoch is only the MPI's is in the way until it is locked as a whole, too. */
  MPI_Win_lock_all(0, win);
  put_often(win, 4);
  require(put_error(other) == MPI_ERR_RMA_SYNC, "a put to a window that is not locked is accepted");
  MPI_Win_lock_all(0, other);
  put_often(other, 5);
  MPI_Win_unlock_all(win);
  require(put_error(win) == MPI_ERR_RMA_SYNC,
          "a put after the first of two unlock_all is accepted");
  put_often(other, 6);
  MPI_Win_unlock_all(other);
  require_value(at, win, 4);
  require_value(other_at, other, 6);
  MPI_Win_free(&fenced);
  MPI_Win_free(&other);
  MPI_Win_free(&win);
}

static int deleted;
static int on_deletion(MPI_Win win, int key, void* value, void* extra) {
  (void)win, (void)key, (void)value, (void)extra;
  ++deleted;
  return MPI_SUCCESS;
}

static void deletion(void) {
  int key;
  MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, on_deletion, &key, NULL);
  for (int i = 0; i < 5; ++i) {
    int64_t* base;
    MPI_Win win = made(MPI_COMM_WORLD, &base);
    MPI_Win_set_attr(win, key, &deleted);
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    MPI_Win_unlock(0, win);
    MPI_Win_free(&win);
  }
  require(deleted == 5, "a deletion function was not called");
  MPI_Win_free_keyval(&key);
}

/* ---- circles that both MPIs resolve ---- */

static void tell(int to) { MPI_Send(NULL, 0, MPI_BYTE, to, 9, MPI_COMM_WORLD); }
static void hear(int from) {
  MPI_Recv(NULL, 0, MPI_BYTE, from, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* 0 has locked all, 1 waits for an exclusive lock, 2 locks all, and 0 waits for 2. */
static void circle_all(void) {
  int64_t* base;
  MPI_Win win = made(MPI_COMM_WORLD, &base);
  if (rank == 0) {
    MPI_Win_lock_all(0, win);
    tell(1);
    tell(2);
    hear(2);
    MPI_Win_unlock_all(win);
  } else if (rank == 1) {
    hear(0);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    MPI_Win_unlock(0, win);
  } else if (rank == 2) {
    hear(0);
    pass_milliseconds(100);
    MPI_Win_lock_all(0, win);
    MPI_Win_unlock_all(win);
    tell(0);
  }
  MPI_Win_free(&win);
}

/* 0 holds a target exclusively, 1 waits in lock_all, 2 locks another target, and 0 waits for 2. */
static void circle_one(int locks_before) {
  int64_t* base;
  MPI_Win win = made(MPI_COMM_WORLD, &base);
  for (int i = 0; i < locks_before; ++i) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win);
    MPI_Win_unlock(rank, win);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    const int64_t one = 1;
    MPI_Put(&one, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, win);
    MPI_Win_flush(0, win);
    tell(1);
    tell(2);
    hear(2);
    MPI_Win_unlock(0, win);
  } else if (rank == 1) {
    hear(0);
    MPI_Win_lock_all(0, win);
    MPI_Win_unlock_all(win);
  } else if (rank == 2) {
    hear(0);
    pass_milliseconds(100);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 2, 0, win);
    MPI_Win_unlock(2, win);
    tell(0);
  }
  MPI_Win_free(&win);
}

/* ---- a writer among readers ---- */

static int64_t sum_of(MPI_Win counters, int all) {
  int64_t sum = 0;
  for (int r = 0; r < all; ++r) {
    MPI_Aint size = 0;
    int unit = 0;
    volatile int64_t* its = NULL;
    MPI_Win_shared_query(counters, r, &size, &unit, (void*)&its);
    sum += *its;
  }
  return sum;
}

/* Each rank counts its shared locks where rank 1 can read them; rank 1's own counter says that it
 * has finished. The limit is far above what a rank does that runs while the writer does not, and
 * far below what readers do that keep a writer out. */
static void writer(void) {
  const int writes = 5;
  const int64_t most_in_one_wait = 1000;
  int64_t* base;
  volatile int64_t* mine;
  volatile int64_t* finished;
  MPI_Aint size = 0;
  int unit = 0;
  MPI_Win win = made(MPI_COMM_WORLD, &base);
  MPI_Win counters;
  MPI_Win_allocate_shared(sizeof(int64_t), sizeof(int64_t), MPI_INFO_NULL, MPI_COMM_WORLD,
                          (void*)&mine, &counters);
  MPI_Win_shared_query(counters, 1, &size, &unit, (void*)&finished);
  *mine = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1) {
    for (int i = 0; i < writes; ++i) {
      usleep(5000);
      const int64_t before = sum_of(counters, ranks);
      MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
      const int64_t passed = sum_of(counters, ranks) - before;
      MPI_Win_unlock(0, win);
      if (passed > most_in_one_wait)
        fprintf(stderr, "%lld shared locks in one wait\n", (long long)passed);
      require(passed <= most_in_one_wait, "readers keep an exclusive lock out");
    }
    *mine = 1;
  } else {
    while (*finished == 0) {
      MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
      ++*mine;
      pass_milliseconds(0.3);
      MPI_Win_unlock(0, win);
    }
  }
  MPI_Win_free(&counters);
  MPI_Win_free(&win);
}

int main(int argc, char** argv) {
  const char* const pattern = argc > 1 ? argv[1] : "";
  int level = 0;
  const int wanted = strcmp(pattern, "threads") == 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, wanted, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (strcmp(pattern, "poll-lock") == 0)
    poll(by_lock, 0, 0);
  else if (strcmp(pattern, "poll-same") == 0)
    poll(by_lock, 1, 0);
  else if (strcmp(pattern, "poll-lock-all") == 0)
    poll(by_lock_all, 0, 0);
  else if (strcmp(pattern, "poll-slowly") == 0)
    poll(by_lock, 0, 1);
  else if (strcmp(pattern, "threads") == 0)
    threads(level);
  else if (strcmp(pattern, "spawn") == 0)
    with_children(argv);
  else if (strcmp(pattern, "intercomm") == 0)
    of_halves();
  else if (strcmp(pattern, "assertions") == 0)
    assertions();
  else if (strcmp(pattern, "not-locked") == 0)
    not_locked();
  else if (strcmp(pattern, "held") == 0)
    held();
  else if (strcmp(pattern, "deletion") == 0)
    deletion();
  else if (strcmp(pattern, "circle-all") == 0)
    circle_all();
  else if (strcmp(pattern, "circle-one") == 0)
    circle_one(0);
  else if (strcmp(pattern, "circle-later") == 0)
    circle_one(1000);
  else if (strcmp(pattern, "writer") == 0)
    writer();
  else
    require(0, "pattern? (accepted: those at the head of patterns.c)");
  MPI_Finalize();
  if (rank == 0) printf("all holds\n");
  return 0;
}
