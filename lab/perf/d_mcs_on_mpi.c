/* The queue lock d-mcs in plain MPI-3, as an author without a simulator writes it: it is
 * run under SimGrid's SMPI, to compare how fast operations are simulated (`./dev perf`).
 *
 * usage: d_mcs_on_mpi poll|message ACQUIRES
 *   poll     a waiter looks at its own word again and again, and probes for messages in between:
 *            SMPI's clock stands still for a rank that does not call MPI
 *   message  the lock is handed over by a message, so that waiting costs the simulator nothing
 *
 * All ranks together acquire and release the lock that often, with nothing inside. Rank 0 prints
 * the number of network operations (put, swap, compare-swap, message; no flushes) and of acquires.
 *
 * A rank refers to another by its number plus 1; 0 is no rank.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The words of each rank's window; the lock's tail is that of rank 0. */
enum { tail, next, wait_word, words };

static volatile uint64_t* mine;
static MPI_Win win;
static int rank;
static int by_message;
static uint64_t operations = 0;
static uint64_t acquired = 0;

static uint64_t swap(int home, MPI_Aint word, uint64_t value) {
  uint64_t before = 0;
  /* MPI_Fetch_and_op is MPI_Get_accumulate of one element in SMPI. */
  MPI_Fetch_and_op(&value, &before, MPI_UINT64_T, home, word, MPI_REPLACE, win);
  MPI_Win_flush(home, win);
  ++operations;
  return before;
}

static uint64_t compare_swap(int home, MPI_Aint word, uint64_t expected, uint64_t desired) {
  uint64_t before = 0;
  MPI_Compare_and_swap(&desired, &expected, &before, MPI_UINT64_T, home, word, win);
  MPI_Win_flush(home, win);
  ++operations;
  return before;
}

static void put(int home, MPI_Aint word, uint64_t value) {
  MPI_Put(&value, 1, MPI_UINT64_T, home, word, 1, MPI_UINT64_T, win);
  MPI_Win_flush(home, win);
  ++operations;
}

/* SMPI has no MPI_Win_sync; every write to a window is a copy into this rank's own memory. */
static void look_again(void) {
  int any = 0;
  MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &any, MPI_STATUS_IGNORE);
}

static void acquire(void) {
  mine[next] = 0;
  mine[wait_word] = 1;
  const uint64_t before = swap(0, tail, (uint64_t)rank + 1);
  ++acquired;
  if (before == 0) return;
  put((int)before - 1, next, (uint64_t)rank + 1);
  if (by_message) {
    MPI_Recv(NULL, 0, MPI_BYTE, (int)before - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    while (mine[wait_word] != 0) look_again();
  }
}

static void release(void) {
  if (mine[next] == 0) {
    const uint64_t me = (uint64_t)rank + 1;
    if (compare_swap(0, tail, me, 0) == me) return;
    while (mine[next] == 0) look_again();
  }
  const int successor = (int)mine[next] - 1;
  if (by_message) {
    MPI_Send(NULL, 0, MPI_BYTE, successor, 0, MPI_COMM_WORLD);
    ++operations;
  } else {
    put(successor, wait_word, 0);
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const long acquires = argc == 3 ? atol(argv[2]) : 0;
  by_message = argc == 3 && strcmp(argv[1], "message") == 0;
  if (acquires <= 0 || (!by_message && strcmp(argv[1], "poll") != 0)) {
    if (rank == 0) fprintf(stderr, "usage: d_mcs_on_mpi poll|message ACQUIRES\n");
    MPI_Finalize();
    return 2;
  }

  MPI_Win_allocate(words * sizeof(uint64_t), sizeof(uint64_t), MPI_INFO_NULL, MPI_COMM_WORLD,
                   (void*)&mine, &win);
  for (int i = 0; i < words; ++i) mine[i] = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock_all(0, win);
  for (long i = rank; i < acquires; i += ranks) {
    acquire();
    release();
  }
  MPI_Win_unlock_all(win);
  MPI_Barrier(MPI_COMM_WORLD);

  uint64_t all[2] = {0, 0};
  const uint64_t own[2] = {operations, acquired};
  MPI_Reduce(own, all, 2, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%llu %llu\n", (unsigned long long)all[0], (unsigned long long)all[1]);
  MPI_Win_free(&win);
  MPI_Finalize();
  return 0;
}
