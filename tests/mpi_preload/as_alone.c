/* Prints the errors of calls that MPI refuses, and those of the calls after them: the same with and
 * without the drop-in. Run by 2 ranks, of which rank 0 prints.
 *
 * usage: as_alone WHAT HANDLER
 * WHAT is windows, flushes, freed or null. HANDLER is returned, own or of_world: the handler of the
 * communicator or window that returns errors, one of the program's own, or none, while
 * MPI_COMM_WORLD has one of the program's own and MPI_COMM_SELF another. The result of a call after
 * which the program's own handler was called is not printed: MPICH 4.3 and 5 return MPI_SUCCESS
 * then.
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static int rank, ranks;
static int calls;
static int called_with = MPI_SUCCESS;

static void note(const int* code) {
  ++calls;
  MPI_Error_class(*code, &called_with);
}
static void note_window(MPI_Win* win, int* code, ...) {
  (void)win;
  note(code);
}
static void note_communicator(MPI_Comm* comm, int* code, ...) {
  (void)comm;
  note(code);
}
static void note_self(MPI_Comm* comm, int* code, ...) {
  note_communicator(comm, code);
  if (rank == 0) puts("MPI_COMM_SELF's handler was called");
}

static void told(const char* what, int code) {
  int class = MPI_SUCCESS;
  MPI_Error_class(code, &class);
  if (rank == 0 && calls > 0) printf("%s: %d call(s) with %d\n", what, calls, called_with);
  if (rank == 0 && calls == 0) printf("%s: %d\n", what, class);
  calls = 0;
}
#define TOLD(call) told(#call, call)

static MPI_Comm made_communicator(void) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  return comm;
}

static void set_handler(const char* which, MPI_Comm comm, const MPI_Win* win) {
  MPI_Errhandler own, own_of_window;
  MPI_Comm_create_errhandler(note_communicator, &own);
  MPI_Win_create_errhandler(note_window, &own_of_window);
  if (strcmp(which, "of_world") == 0) {
    MPI_Errhandler of_self;
    MPI_Comm_create_errhandler(note_self, &of_self);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, own);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, of_self);
    MPI_Errhandler_free(&of_self);
  } else {
    const int is_own = strcmp(which, "own") == 0;
    MPI_Comm_set_errhandler(comm, is_own ? own : MPI_ERRORS_RETURN);
    if (win != NULL) MPI_Win_set_errhandler(*win, is_own ? own_of_window : MPI_ERRORS_RETURN);
  }
  MPI_Errhandler_free(&own);
  MPI_Errhandler_free(&own_of_window);
}

static void locks_and_unlocks(MPI_Win win) {
  int got = 0;
  TOLD(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win));
  TOLD(MPI_Get(&got, 1, MPI_INT, 1, 0, 1, MPI_INT, win));
  TOLD(MPI_Win_unlock(1, win));
  TOLD(MPI_Win_lock_all(0, win));
  TOLD(MPI_Win_unlock_all(win));
}

/* Windows that cannot be made. */
static void windows(const char* handler) {
  MPI_Comm comm = made_communicator();
  set_handler(handler, comm, NULL);
  int memory[16];
  void* base = NULL;
  MPI_Win win = MPI_WIN_NULL;
  TOLD(MPI_Win_allocate(64, 8, MPI_INFO_NULL, comm, &base, NULL));
  TOLD(MPI_Win_allocate(-1, 8, MPI_INFO_NULL, comm, &base, &win));
  TOLD(MPI_Win_allocate_shared(-1, 8, MPI_INFO_NULL, comm, &base, &win));
  TOLD(MPI_Win_create(memory, -1, 8, MPI_INFO_NULL, comm, &win));
  TOLD(MPI_Win_create(memory, sizeof memory, -1, MPI_INFO_NULL, comm, NULL));
  TOLD(MPI_Win_create_dynamic(MPI_INFO_NULL, comm, NULL));
  TOLD(MPI_Win_allocate(64, 8, MPI_INFO_NULL, comm, &base, &win));
  locks_and_unlocks(win);
  TOLD(MPI_Win_free(&win));
  TOLD(MPI_Win_allocate(-1, 8, MPI_INFO_NULL, comm, &base, &win));
  MPI_Comm_free(&comm);
}

static void all_flushes(int target, MPI_Win win) {
  TOLD(MPI_Win_flush(target, win));
  TOLD(MPI_Win_flush_all(win));
  TOLD(MPI_Win_flush_local(target, win));
  TOLD(MPI_Win_flush_local_all(win));
  TOLD(MPI_Win_sync(win));
}

static MPI_Win made_window(MPI_Comm comm) {
  void* base = NULL;
  MPI_Win win;
  MPI_Win_allocate(64, 8, MPI_INFO_NULL, comm, &base, &win);
  return win;
}

/* Before a lock, after the first one and after the second, and while a target is locked. */
static void flushes(const char* handler) {
  MPI_Comm comm = made_communicator();
  MPI_Win win = made_window(comm);
  set_handler(handler, comm, &win);
  all_flushes(0, win);
  locks_and_unlocks(win);
  all_flushes(0, win);
  locks_and_unlocks(win);
  TOLD(MPI_Win_flush_all(win));
  TOLD(MPI_Win_flush_local_all(win));
  TOLD(MPI_Win_sync(win));
  TOLD(MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win));
  all_flushes(1, win);
  TOLD(MPI_Win_unlock(1, win));
  TOLD(MPI_Win_fence(0, win));
  TOLD(MPI_Win_flush(0, win));
  TOLD(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
  TOLD(MPI_Win_unlock(1, win)); /* not locked */
  MPI_Win_free(&win);
  MPI_Comm_free(&comm);
}

/* A window that is not freed, since its memory may still be accessed, lives on. */
static void freed(const char* handler) {
  MPI_Comm comm = made_communicator();
  MPI_Win win = made_window(comm);
  set_handler(handler, comm, &win);
  MPI_Win_set_name(win, "refused");
  if (rank == 0) {
    for (int i = 0; i < 2; ++i) {
      int got = 0;
      TOLD(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win));
      TOLD(MPI_Win_free(&win));
      TOLD(MPI_Get(&got, 1, MPI_INT, 1, 0, 1, MPI_INT, win));
      TOLD(MPI_Win_unlock(1, win));
      locks_and_unlocks(win);
      TOLD(MPI_Win_lock_all(0, win));
      TOLD(MPI_Win_free(&win));
      TOLD(MPI_Win_unlock_all(win));
    }
  }
  TOLD(MPI_Win_free(&win));
  told("is null", win == MPI_WIN_NULL ? MPI_SUCCESS : MPI_ERR_WIN);
  MPI_Win again = made_window(comm);
  locks_and_unlocks(again);
  MPI_Win_free(&again);
  MPI_Comm_free(&comm);
}

/* Calls on no communicator and on no window. */
static void null(const char* handler) {
  set_handler(handler, MPI_COMM_WORLD, NULL);
  int memory[16];
  int got = 0;
  void* base = NULL;
  MPI_Win win = MPI_WIN_NULL;
  TOLD(MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_NULL, &base, &win));
  TOLD(MPI_Win_create(memory, sizeof memory, 8, MPI_INFO_NULL, MPI_COMM_NULL, &win));
  win = MPI_WIN_NULL;
  locks_and_unlocks(win);
  all_flushes(0, win);
  TOLD(MPI_Win_fence(0, win));
  TOLD(MPI_Put(&got, 1, MPI_INT, 0, 0, 1, MPI_INT, win));
  TOLD(MPI_Win_free(&win));
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc != 3) MPI_Abort(MPI_COMM_WORLD, 2);
  if (strcmp(argv[1], "windows") == 0) windows(argv[2]);
  if (strcmp(argv[1], "flushes") == 0) flushes(argv[2]);
  if (strcmp(argv[1], "freed") == 0) freed(argv[2]);
  if (strcmp(argv[1], "null") == 0) null(argv[2]);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) puts("the end");
  MPI_Finalize();
  return 0;
}
