/* A profile on MPI: what mpirun starts with nine ranks. Only the first one knows it, and all
 * have its parameters: ranks that differed would look for a lock's words in different places.
 *
 * Prints "all holds", or says what does not and ends the launch with 1. */
#include <lockflight/lockflight_mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank;

static void require(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "profile_on_mpi.c: rank %d: %s (last error: %s)\n", rank, what,
          lockflight_last_error());
  MPI_Abort(MPI_COMM_WORLD, 1);
}

/* dq-fair with 3 counter bits is for 8 ranks at most, and says so. */
static void create(int is_tuned) {
  lockflight_participant* me = NULL;
  lockflight_mutex* mutex = NULL;
  struct lockflight_lock_options options = {0};
  options.name = "dq-fair";
  require(lockflight_join_mpi(MPI_COMM_WORLD, NULL, &me) == LOCKFLIGHT_OK, "join");
  if (is_tuned) {
    require(lockflight_mutex_create(me, &options, &mutex) == LOCKFLIGHT_INVALID, "has no profile");
    require(strstr(lockflight_last_error(), "counter_bits=3: 9 ranks") != NULL, "says otherwise");
  } else {
    require(lockflight_mutex_create(me, &options, &mutex) == LOCKFLIGHT_OK, "has a profile");
  }
  require(lockflight_leave(me) == LOCKFLIGHT_OK, "leave");
}

int main(int argc, char** argv) {
  char path[64];
  snprintf(path, sizeof path, "/tmp/lockflight-profile-%ld", (long)getpid());
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  create(0);
  if (rank == 0) {
    FILE* const file = fopen(path, "wx");
    require(file != NULL, "no file");
    fputs("format = 1\n[dq-fair.parameters]\ncounter_bits = 3\n", file);
    fclose(file);
    setenv("LOCKFLIGHT_PROFILE", path, 1);
  } else {
    setenv("LOCKFLIGHT_PROFILE", "/nowhere", 1);
  }
  create(1);
  if (rank == 0) remove(path);
  if (rank == 0) puts("all holds");
  MPI_Finalize();
  return 0;
}
