/* How many locks of a window all ranks together get in a second, with whatever MPI_Win_lock there
 * is: the MPI's own, or the drop-in's under LD_PRELOAD.
 *
 * usage: mpi_window_locks WHAT SECONDS
 *   exclusive       every rank locks rank 0 exclusively and unlocks it
 *   exclusive-data  the same, and adds 1 to a counter there, with a get and a put
 *   shared          98 of 100 locks of rank 0 are shared
 *   shared-data     the same; a shared holder gets the counter, an exclusive one adds 1 to it
 *   readers         all locks of rank 0 are shared
 *   lock_all        MPI_Win_lock_all, MPI_Win_unlock_all
 *   spread          as exclusive-data, each rank on all targets in turn
 *   alone           rank 0 locks the last rank exclusively; the others wait in a barrier
 *   alone-data      the same, and adds 1 to the counter there
 *   alone-shared    rank 0 locks the last rank shared and gets the counter
 *   held            rank 0 holds lock_all, and puts a number to the last rank and flushes it again
 *                   and again; the others wait in a barrier. The number counts each put and flush
 *   windows         a window is made, each rank does exclusive-data there four times, and the
 *                   window is freed; the number counts each window once for each rank
 *
 * Prints that number and the rate of the slowest rank, and fails if an addition was lost. Where
 * rank 0 is alone, also its rate in the best stretch of 1,000, which other work of the machine does
 * not change.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t* counter;
static MPI_Win win;
static uint64_t additions = 0;

static void lock_and_unlock(int type) {
  MPI_Win_lock(type, 0, 0, win);
  MPI_Win_unlock(0, win);
}

static int rank = 0;
static int ranks = 0;

static int one_of_fifty(void) {
  static unsigned turn = 0;
  return ++turn % 50 == 0;
}

static void exclusive(void) { lock_and_unlock(MPI_LOCK_EXCLUSIVE); }

static void readers(void) { lock_and_unlock(MPI_LOCK_SHARED); }

static void shared(void) { lock_and_unlock(one_of_fifty() ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED); }

static void add_at(int target) {
  uint64_t value = 0;
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win);
  MPI_Get(&value, 1, MPI_UINT64_T, target, 0, 1, MPI_UINT64_T, win);
  MPI_Win_flush(target, win);
  ++value;
  MPI_Put(&value, 1, MPI_UINT64_T, target, 0, 1, MPI_UINT64_T, win);
  MPI_Win_unlock(target, win);
  ++additions;
}

static void exclusive_data(void) { add_at(0); }

static void spread(void) {
  static int turn = 0;
  add_at((rank + ++turn) % ranks);
}

static void alone(void) {
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, ranks - 1, 0, win);
  MPI_Win_unlock(ranks - 1, win);
}

static void alone_data(void) { add_at(ranks - 1); }

static void alone_shared(void) {
  uint64_t value = 0;
  MPI_Win_lock(MPI_LOCK_SHARED, ranks - 1, 0, win);
  MPI_Get(&value, 1, MPI_UINT64_T, ranks - 1, 0, 1, MPI_UINT64_T, win);
  MPI_Win_unlock(ranks - 1, win);
}

static void shared_data(void) {
  uint64_t value = 0;
  if (one_of_fifty()) {
    exclusive_data();
    return;
  }
  MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
  MPI_Get(&value, 1, MPI_UINT64_T, 0, 0, 1, MPI_UINT64_T, win);
  MPI_Win_unlock(0, win);
}

static void lock_all(void) {
  MPI_Win_lock_all(0, win);
  MPI_Win_unlock_all(win);
}

static void held(void) {
  const uint64_t value = 0;
  MPI_Put(&value, 1, MPI_UINT64_T, ranks - 1, 0, 1, MPI_UINT64_T, win);
  MPI_Win_flush(ranks - 1, win);
}

/* MPICH 4.0 over UCX puts to the wrong place in windows whose size is no multiple of this. */
enum { bytes_of_window = 64 };

static void make_window(void) {
  MPI_Win_allocate(bytes_of_window, sizeof(uint64_t), MPI_INFO_NULL, MPI_COMM_WORLD, &counter,
                   &win);
  counter[0] = 0;
  MPI_Barrier(MPI_COMM_WORLD);
}

static uint64_t additions_found = 0;

static void free_window(void) {
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
  additions_found += counter[0];
  MPI_Win_unlock(rank, win);
  MPI_Win_free(&win);
}

static void windows(void) {
  for (int i = 0; i < 4; ++i) add_at(0);
  free_window();
  make_window();
}

static const struct {
  const char* name;
  void (*once)(void);
} choices[] = {
    {"exclusive", exclusive},
    {"exclusive-data", exclusive_data},
    {"shared", shared},
    {"shared-data", shared_data},
    {"readers", readers},
    {"lock_all", lock_all},
    {"spread", spread},
    {"alone", alone},
    {"alone-data", alone_data},
    {"alone-shared", alone_shared},
    {"held", held},
    {"windows", windows},
};

enum { in_a_stretch = 1000 };

/* What is collective all ranks do equally often. */
static int is_over(int is_collective, double begun, double seconds) {
  int over = MPI_Wtime() - begun >= seconds;
  if (is_collective) MPI_Bcast(&over, 1, MPI_INT, 0, MPI_COMM_WORLD);
  return over;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const char* const what = argc > 1 ? argv[1] : "";
  const double seconds = argc > 2 ? atof(argv[2]) : 1;
  void (*once)(void) = NULL;
  for (size_t i = 0; i < sizeof(choices) / sizeof(choices[0]); ++i)
    if (strcmp(what, choices[i].name) == 0) once = choices[i].once;
  if (once == NULL || !(seconds > 0)) {
    fprintf(stderr, "usage: mpi_window_locks WHAT SECONDS, with one of");
    for (size_t i = 0; i < sizeof(choices) / sizeof(choices[0]); ++i)
      fprintf(stderr, " %s", choices[i].name);
    fprintf(stderr, "\n");
    MPI_Finalize();
    return 2;
  }
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  make_window();
  MPI_Win_fence(0, win);
  uint64_t times = 0;
  const double begun = MPI_Wtime();
  const int is_for_one =
      once == alone || once == alone_data || once == alone_shared || once == held;
  double best = 0;
  if (is_for_one && rank == 0) {
    if (once == held) MPI_Win_lock_all(0, win);
    for (double from = begun, to = begun; to - begun < seconds; from = to) {
      for (int i = 0; i < in_a_stretch; ++i) once();
      times += in_a_stretch;
      to = MPI_Wtime();
      if (in_a_stretch > best * (to - from)) best = in_a_stretch / (to - from);
    }
    if (once == held) MPI_Win_unlock_all(win);
  } else if (!is_for_one) {
    for (; !is_over(once == windows, begun, seconds); ++times) once();
  }
  const double took = MPI_Wtime() - begun;
  free_window();

  double rate = (double)times / took;
  double least = rate;
  MPI_Allreduce(MPI_IN_PLACE, &rate, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, &least, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, &additions, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, &additions_found, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  const int lost = additions_found != additions;
  if (rank == 0) {
    printf(best > 0 ? "%.1f %.1f %.1f\n" : "%.1f %.1f\n", rate, least, best);
    if (lost)
      fprintf(stderr, "mpi_window_locks: %llu additions, the counters say %llu\n",
              (unsigned long long)additions, (unsigned long long)additions_found);
    fflush(stdout);
  }
  MPI_Finalize();
  return lost ? 1 : 0;
}
