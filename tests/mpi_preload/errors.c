/* Errors through the window's error handler, the user's own, and windows that are freed after
 * others have locked them. Run by 2 ranks or more; the first rank that finds a fault aborts with
 * its line.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "checks.h"

static int rank, ranks;

static int calls;
static MPI_Win called_for = MPI_WIN_NULL;
static int called_with = MPI_SUCCESS;

static void note(MPI_Win* win, int* code, ...) {
  ++calls;
  called_for = *win;
  MPI_Error_class(*code, &called_with);
}

/* The call failed, and the handler was called once, for this window and with this class. */
static void raised(int code, int expected, MPI_Win win) {
  int class = MPI_SUCCESS;
  MPI_Error_class(code, &class);
  REQUIRE(class == expected);
  REQUIRE(calls == 1);
  REQUIRE(called_for == win);
  REQUIRE(called_with == expected);
  calls = 0;
}

static void goes_well(int code) {
  REQUIRE(code == MPI_SUCCESS);
  REQUIRE(calls == 0);
}

/* `other` has the handler too: an error of one is not reported as the other's. */
static void own_handler(MPI_Win win, MPI_Win other) {
  MPI_Errhandler handler;
  MPI_Win_create_errhandler(note, &handler);
  MPI_Win_set_errhandler(win, handler);
  MPI_Win_set_errhandler(other, handler);
  MPI_Errhandler_free(&handler); /* the windows keep it */

  raised(MPI_Win_unlock(rank, win), MPI_ERR_RMA_SYNC, win);
  raised(MPI_Win_unlock(rank, other), MPI_ERR_RMA_SYNC, other);
  raised(MPI_Win_unlock_all(win), MPI_ERR_RMA_SYNC, win);
  raised(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, ranks, 0, win), MPI_ERR_RANK, win);
  raised(MPI_Win_unlock(ranks, win), MPI_ERR_RANK, win);
  raised(MPI_Win_lock(-1, rank, 0, win), MPI_ERR_LOCKTYPE, win);
  goes_well(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
  raised(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win), MPI_ERR_RMA_SYNC, win);
  raised(MPI_Win_lock_all(0, win), MPI_ERR_RMA_SYNC, win);
  raised(MPI_Win_unlock_all(win), MPI_ERR_RMA_SYNC, win);
  goes_well(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, other)); /* the other window is free */
  goes_well(MPI_Win_unlock(rank, other));
  goes_well(MPI_Win_unlock(rank, win)); /* what failed has taken nothing */
  goes_well(MPI_Win_lock_all(0, win));
  raised(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win), MPI_ERR_RMA_SYNC, win);
  raised(MPI_Win_unlock(rank, win), MPI_ERR_RMA_SYNC, win);
  goes_well(MPI_Win_unlock_all(win));
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  MPI_Win_unlock(rank, win);
  REQUIRE(calls == 0); /* no longer asked */
  MPI_Win_set_errhandler(win, MPI_ERRORS_ARE_FATAL);
  MPI_Win_set_errhandler(other, MPI_ERRORS_ARE_FATAL);
  MPI_Barrier(MPI_COMM_WORLD);
}

/* MPI itself refuses a lock within an epoch of post and start, and calls the handler; the drop-in
 * does not call it again. Some MPIs accept the lock. */
static void refused_by_mpi(MPI_Win win) {
  const int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
  MPI_Group all, to, from;
  MPI_Win_get_group(win, &all);
  MPI_Group_incl(all, 1, &next, &to);
  MPI_Group_incl(all, 1, &previous, &from);
  MPI_Errhandler handler;
  MPI_Win_create_errhandler(note, &handler);
  MPI_Win_post(from, 0, win);
  MPI_Win_start(to, 0, win);
  MPI_Win_set_errhandler(win, handler);
  const int code = MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win);
  if (code == MPI_SUCCESS) {
    goes_well(MPI_Win_unlock(next, win));
  } else {
    raised(code, MPI_ERR_RMA_SYNC, win);
  }
  MPI_Win_set_errhandler(win, MPI_ERRORS_ARE_FATAL);
  MPI_Errhandler_free(&handler);
  MPI_Win_complete(win);
  MPI_Win_wait(win);
  MPI_Group_free(&all);
  MPI_Group_free(&to);
  MPI_Group_free(&from);
  MPI_Barrier(MPI_COMM_WORLD);
}

/* MPI_Win_free waits for all, so no rank's lock is lost in it: a rank without a lock frees at once,
 * while the others still lock, put and unlock. */
static void freed_while_others_lock(void) {
  uint64_t* base = NULL;
  MPI_Win win;
  MPI_Win_allocate(64, sizeof(uint64_t), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
  base[0] = 0;
  MPI_Win_fence(0, win);
  const uint64_t one = 1;
  for (int i = 0; i < 10 && rank > 0; ++i) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank - 1, 0, win);
    MPI_Accumulate(&one, 1, MPI_UINT64_T, rank - 1, 0, 1, MPI_UINT64_T, MPI_SUM, win);
    MPI_Win_unlock(rank - 1, win);
  }
  MPI_Win_free(&win);
  REQUIRE(win == MPI_WIN_NULL);
}

/* Memory that comes to a dynamic window between two locks, and goes again. */
static void attached_and_detached(void) {
  enum { times = 3, words = 512 };
  MPI_Win win;
  MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  for (uint64_t i = 1; i <= times; ++i) {
    uint64_t* const memory = calloc(words, sizeof *memory);
    REQUIRE(memory != NULL);
    MPI_Win_attach(win, memory, words * sizeof *memory);
    MPI_Aint address = 0;
    MPI_Get_address(memory, &address);
    MPI_Bcast(&address, 1, MPI_AINT, 0, MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    MPI_Accumulate(&i, 1, MPI_UINT64_T, 0, address, 1, MPI_UINT64_T, MPI_SUM, win);
    MPI_Win_unlock(0, win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, win);
    uint64_t sum = 0;
    MPI_Get(&sum, 1, MPI_UINT64_T, 0, address, 1, MPI_UINT64_T, win);
    MPI_Win_unlock_all(win);
    REQUIRE(sum == i * (uint64_t)ranks);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_detach(win, memory);
    free(memory);
  }
  MPI_Win_free(&win);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  void* base = NULL;
  MPI_Win win, other;
  MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
  MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &other);
  own_handler(win, other);
  refused_by_mpi(other);
  MPI_Win_free(&other);
  MPI_Win_free(&win);
  freed_while_others_lock();
  attached_and_detached();
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) puts("all holds");
  MPI_Finalize();
  return 0;
}
