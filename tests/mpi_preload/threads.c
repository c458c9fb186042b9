/* Several threads of each rank in the drop-in at once (MPI_THREAD_MULTIPLE). Run by 2 ranks or
 * more; the first thread that finds a fault aborts with its line. The argument is the number of
 * threads.
 *
 * Two threads of a rank never lock the same target of a window at the same time, which the standard
 * forbids: target t of window w belongs to thread (w + t) % threads of every rank, so each thread
 * has targets in many windows and shares every window with others. A thread that holds several
 * locks takes them in the order of the windows.
 */
#include <mpi.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "checks.h"

static int rank, ranks, threads;

enum { rounds = 10, most_threads = 8, words = 8 };

/* One window for each thread: all threads use all of them in lock_targets and in chains; in
 * lock_all each thread keeps to its own, since a process has one epoch on all targets at most. */
static MPI_Win windows[most_threads];
/* Displacements. Two words that are equal whenever the lock is free, and a count. */
enum { pair = 0, chained = 2, all_pair = 3 };

/* Adds one to both words at `at`, each by itself: a thread that does not wait sees them differ. */
static void add_to_pair(MPI_Win win, int target, MPI_Aint at) {
  uint64_t value[2] = {0, 1};
  MPI_Get(value, 2, MPI_UINT64_T, target, at, 2, MPI_UINT64_T, win);
  MPI_Win_flush(target, win);
  REQUIRE(value[0] == value[1]);
  for (int i = 0; i < 2; ++i) {
    ++value[i];
    MPI_Put(&value[i], 1, MPI_UINT64_T, target, at + i, 1, MPI_UINT64_T, win);
    MPI_Win_flush(target, win);
  }
}

static uint64_t look_at_pair(MPI_Win win, int target, MPI_Aint at) {
  uint64_t value[2] = {0, 1};
  MPI_Get(value, 2, MPI_UINT64_T, target, at, 2, MPI_UINT64_T, win);
  MPI_Win_flush(target, win);
  REQUIRE(value[0] == value[1]);
  return value[0];
}

/* Different targets of the same windows, exclusively and shared. */
static void lock_targets(int me) {
  for (int i = 0; i < rounds; ++i)
    for (int w = 0; w < threads; ++w)
      for (int target = 0; target < ranks; ++target) {
        if ((w + target) % threads != me) continue;
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, windows[w]);
        add_to_pair(windows[w], target, pair);
        MPI_Win_unlock(target, windows[w]);
        MPI_Win_lock(MPI_LOCK_SHARED, target, 0, windows[w]);
        look_at_pair(windows[w], target, pair);
        MPI_Win_unlock(target, windows[w]);
      }
}

/* All of a thread's targets held at once, while the other threads hold theirs. */
static void chains(int me) {
  const uint64_t one = 1;
  for (int i = 0; i < rounds; ++i) {
    for (int w = 0; w < threads; ++w)
      for (int target = 0; target < ranks; ++target)
        if ((w + target) % threads == me) {
          MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, windows[w]);
          MPI_Accumulate(&one, 1, MPI_UINT64_T, target, chained, 1, MPI_UINT64_T, MPI_SUM,
                         windows[w]);
        }
    for (int w = 0; w < threads; ++w)
      for (int target = 0; target < ranks; ++target)
        if ((w + target) % threads == me) MPI_Win_unlock(target, windows[w]);
  }
}

/* Each thread in its window: all at once, and one exclusively, in turns that differ by rank. */
static void lock_all(int me) {
  const MPI_Win win = windows[me];
  for (int i = 0; i < rounds; ++i) {
    const int target = (rank + i) % ranks;
    if ((rank + i) % 2 == 0) {
      MPI_Win_lock_all(0, win);
      for (int t = 0; t < ranks; ++t) look_at_pair(win, t, all_pair);
      MPI_Win_unlock_all(win);
    } else {
      MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win);
      add_to_pair(win, target, all_pair);
      MPI_Win_unlock(target, win);
    }
  }
}

/* Two threads make windows of all ranks, each on a communicator of its own: of one group of
 * processes, at the same time, in an order that differs from rank to rank. */
enum { makers = 2, windows_made = 3 };
static MPI_Comm own[makers];
static void* makes_windows(void* number) {
  const MPI_Comm comm = own[*(const int*)number];
  const uint64_t one = 1;
  for (int i = 0; i < windows_made; ++i) {
    uint64_t* mine;
    MPI_Win win;
    MPI_Win_allocate(words * sizeof *mine, sizeof *mine, MPI_INFO_NULL, comm, &mine, &win);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win);
    *mine = 0;
    MPI_Win_unlock(rank, win);
    MPI_Barrier(comm);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, (rank + 1) % ranks, 0, win);
    MPI_Accumulate(&one, 1, MPI_UINT64_T, (rank + 1) % ranks, 0, 1, MPI_UINT64_T, MPI_SUM, win);
    MPI_Win_unlock((rank + 1) % ranks, win);
    MPI_Barrier(comm);
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
    REQUIRE(*mine == 1);
    MPI_Win_unlock(rank, win);
    MPI_Win_free(&win);
  }
  return NULL;
}

static void* one_thread(void* number) {
  const int me = *(const int*)number;
  lock_targets(me);
  chains(me);
  return NULL;
}

/* All have left the windows where targets are held one by one: now all at once. */
static void* one_thread_on_all(void* number) {
  lock_all(*(const int*)number);
  return NULL;
}

static void on_threads(int count, void* (*body)(void*)) {
  pthread_t started[most_threads];
  int number[most_threads];
  for (int i = 0; i < count; ++i) {
    number[i] = i;
    REQUIRE(pthread_create(&started[i], NULL, body, &number[i]) == 0);
  }
  for (int i = 0; i < count; ++i) pthread_join(started[i], NULL);
  MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  int level = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  REQUIRE(level == MPI_THREAD_MULTIPLE);
  threads = argc > 1 ? atoi(argv[1]) : 0;
  REQUIRE(threads >= 1 && threads <= most_threads);

  uint64_t* mine[most_threads];
  for (int w = 0; w < threads; ++w) {
    MPI_Win_allocate(words * sizeof(uint64_t), sizeof(uint64_t), MPI_INFO_NULL, MPI_COMM_WORLD,
                     &mine[w], &windows[w]);
    for (int i = 0; i < words; ++i) mine[w][i] = 0;
    MPI_Win_fence(0, windows[w]);
  }

  on_threads(threads, one_thread);
  on_threads(threads, one_thread_on_all);
  for (int i = 0; i < makers; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &own[i]);
  on_threads(makers, makes_windows);
  for (int i = 0; i < makers; ++i) MPI_Comm_free(&own[i]);

  const uint64_t expected = (uint64_t)rounds * (uint64_t)ranks;
  for (int w = 0; w < threads; ++w) {
    uint64_t exclusively = 0;
    for (int target = 0; target < ranks; ++target) {
      uint64_t count = 0;
      MPI_Win_lock(MPI_LOCK_SHARED, target, 0, windows[w]);
      REQUIRE(look_at_pair(windows[w], target, pair) == expected);
      MPI_Get(&count, 1, MPI_UINT64_T, target, chained, 1, MPI_UINT64_T, windows[w]);
      MPI_Win_flush(target, windows[w]);
      REQUIRE(count == expected);
      exclusively += look_at_pair(windows[w], target, all_pair);
      MPI_Win_unlock(target, windows[w]);
    }
    REQUIRE(exclusively == expected / 2); /* every other round of each rank */
  }
  MPI_Barrier(MPI_COMM_WORLD);
  for (int w = 0; w < threads; ++w) MPI_Win_free(&windows[w]);
  if (rank == 0) puts("all holds");
  MPI_Finalize();
  return 0;
}
