/* What the drop-in costs a program that never locks: each rank puts 8 KiB into the next one and
 * fences, as halos are exchanged, by the names that programs call, which the drop-in stands in for,
 * and past them straight into the MPI's library. In turn and in one process, so that what else the
 * machine does, and where it runs the ranks, falls on both alike.
 *
 * usage: mpi_never_locks SECONDS
 *
 * Prints the rate by the names, divided by the rate past them: without the drop-in about 1.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { halo_words = 1024, exchanges_in_turn = 200 };

typedef int put_function(const void*, int, MPI_Datatype, int, MPI_Aint, int, MPI_Datatype, MPI_Win);
typedef int fence_function(int, MPI_Win);

/* Both ways go through pointers that the compiler must read each time, so that they differ in
 * nothing but where they lead. */
struct way {
  put_function* volatile put;
  fence_function* volatile fence;
};

static MPI_Win win;
static int next = 0;

static void exchange(const struct way* by) {
  static const uint64_t halo[halo_words];
  by->put(halo, halo_words, MPI_UINT64_T, next, halo_words, halo_words, MPI_UINT64_T, win);
  by->fence(0, win);
}

static double seconds_of_a_turn(const struct way* by) {
  const double begun = MPI_Wtime();
  for (int i = 0; i < exchanges_in_turn; ++i) exchange(by);
  return MPI_Wtime() - begun;
}

/* Sets the name of the MPI's library among those that are loaded. */
static int is_library(struct dl_phdr_info* info, size_t size, void* name) {
  (void)size;
  const char* const slash = strrchr(info->dlpi_name, '/');
  const char* const base = slash == NULL ? info->dlpi_name : slash + 1;
  if (strncmp(base, "libmpi.so.", 10) != 0 && strncmp(base, "libmpich.so.", 12) != 0) return 0;
  *(const char**)name = info->dlpi_name;
  return 1;
}

static struct way past_the_names(void) {
  struct way straight = {NULL, NULL};
  const char* name = NULL;
  dl_iterate_phdr(is_library, &name);
  void* const library = name == NULL ? NULL : dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
  if (library == NULL) return straight;
  *(void**)&straight.put = dlsym(library, "MPI_Put");
  *(void**)&straight.fence = dlsym(library, "MPI_Win_fence");
  return straight;
}

int main(int argc, char** argv) {
  const double seconds = argc == 2 ? atof(argv[1]) : 0;
  if (!(seconds > 0)) {
    fprintf(stderr, "usage: mpi_never_locks SECONDS\n");
    return 2;
  }
  MPI_Init(&argc, &argv);
  const struct way by_name = {MPI_Put, MPI_Win_fence};
  const struct way straight = past_the_names();
  if (straight.put == NULL || straight.fence == NULL) {
    fprintf(stderr, "mpi_never_locks: the MPI's library is not among those that are loaded\n");
    MPI_Abort(MPI_COMM_WORLD, 3);
  }
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  next = (rank + 1) % ranks;
  void* memory = NULL;
  MPI_Win_allocate(2 * halo_words * sizeof(uint64_t), sizeof(uint64_t), MPI_INFO_NULL,
                   MPI_COMM_WORLD, &memory, &win);
  MPI_Win_fence(0, win);
  double named = 0;
  double past = 0;
  const double begun = MPI_Wtime();
  /* Fences are collective: rank 0 says when it is over. Who goes first takes turns too. */
  for (int go = 1, odd = 0; go; odd = !odd) {
    if (odd) past += seconds_of_a_turn(&straight);
    named += seconds_of_a_turn(&by_name);
    if (!odd) past += seconds_of_a_turn(&straight);
    go = MPI_Wtime() - begun < seconds;
    MPI_Bcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  if (rank == 0) printf("%.4f\n", past / named);
  MPI_Win_free(&win);
  MPI_Finalize();
  return 0;
}
