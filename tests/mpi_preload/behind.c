/* A library to preload behind the drop-in: counts the flushes and the puts that reach the MPI, and
 * says on standard error how many there were when the process ends; of puts, to whom they return. A
 * put that the drop-in passed on by a jump returns to the program. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static int flushes = 0;
static int flushes_of_all = 0;
static int puts_of_program = 0;
static int puts_of_drop_in = 0;

int PMPI_Win_flush(int target, MPI_Win win) {
  int (*flush)(int, MPI_Win) = NULL;
  *(void**)&flush = dlsym(RTLD_NEXT, "PMPI_Win_flush");
  ++flushes;
  return flush(target, win);
}

int PMPI_Win_flush_all(MPI_Win win) {
  int (*flush_all)(MPI_Win) = NULL;
  *(void**)&flush_all = dlsym(RTLD_NEXT, "PMPI_Win_flush_all");
  ++flushes_of_all;
  return flush_all(win);
}

int PMPI_Put(const void* from, int n, MPI_Datatype type, int target, MPI_Aint at, int target_n,
             MPI_Datatype target_type, MPI_Win win) {
  int (*put)(const void*, int, MPI_Datatype, int, MPI_Aint, int, MPI_Datatype, MPI_Win) = NULL;
  *(void**)&put = dlsym(RTLD_NEXT, "PMPI_Put");
  Dl_info caller = {0};
  dladdr(__builtin_return_address(0), &caller);
  if (caller.dli_fname != NULL && strstr(caller.dli_fname, "liblockflight-mpi") != NULL)
    ++puts_of_drop_in;
  else
    ++puts_of_program;
  return put(from, n, type, target, at, target_n, target_type, win);
}

__attribute__((destructor)) static void say(void) {
  fprintf(stderr,
          "flushes: %d\nflushes of all: %d\nputs: %d return to the program, %d to the drop-in\n",
          flushes, flushes_of_all, puts_of_program, puts_of_drop_in);
}
