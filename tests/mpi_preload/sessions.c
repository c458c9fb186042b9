/* Windows of a session's communicator (MPI 4), whose locks keep a sum. Run by 2 ranks or more; the
 * first rank that finds a fault ends with its line.
 *
 * usage: sessions WORD...
 * init: MPI_Init is called too. window: a window of MPI_COMM_WORLD is made first. strict: the
 * session must have nothing left when it is finalised. duplicate: the windows are of a duplicate.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checks.h"

/* A program of sessions alone has no MPI_COMM_WORLD to abort. */
#define REQUIRE_OR_EXIT(holds)                                                  \
  do {                                                                          \
    if (!(holds)) {                                                             \
      fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #holds); \
      exit(1);                                                                  \
    }                                                                           \
  } while (0)

#if MPI_VERSION >= 4 || defined(MPI_SESSION_NULL) /* Open MPI 5 says 3.1 */

static int has_word(int argc, char** argv, const char* word) {
  for (int i = 1; i < argc; ++i)
    if (strcmp(argv[i], word) == 0) return 1;
  return 0;
}

static MPI_Session made_session(int is_strict) {
  MPI_Info info;
  MPI_Info_create(&info);
  if (is_strict) MPI_Info_set(info, "strict_finalize", "1");
  MPI_Session session;
  REQUIRE_OR_EXIT(MPI_Session_init(info, MPI_ERRORS_RETURN, &session) == MPI_SUCCESS);
  MPI_Info_free(&info);
  return session;
}

static MPI_Comm communicator_of(MPI_Session session, int is_duplicate) {
  MPI_Group group;
  REQUIRE_OR_EXIT(MPI_Group_from_session_pset(session, "mpi://WORLD", &group) == MPI_SUCCESS);
  MPI_Comm comm;
  REQUIRE_OR_EXIT(MPI_Comm_create_from_group(group, "lockflight", MPI_INFO_NULL, MPI_ERRORS_RETURN,
                                             &comm) == MPI_SUCCESS);
  MPI_Group_free(&group);
  if (!is_duplicate) return comm;
  MPI_Comm duplicate;
  REQUIRE_OR_EXIT(MPI_Comm_dup(comm, &duplicate) == MPI_SUCCESS);
  MPI_Comm_free(&comm);
  return duplicate;
}

static void sum_is_kept(MPI_Comm comm) {
  enum { times = 100 };
  int rank = 0, ranks = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  uint64_t* sum = NULL;
  MPI_Win win;
  REQUIRE_OR_EXIT(MPI_Win_allocate(64, 8, MPI_INFO_NULL, comm, &sum, &win) == MPI_SUCCESS);
  *sum = 0;
  MPI_Barrier(comm);
  for (int i = 0; i < times; ++i) add_one(win);
  MPI_Barrier(comm);
  MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
  if (rank == 0) REQUIRE_OR_EXIT(*sum == (uint64_t)ranks * times);
  MPI_Win_unlock(rank, win);
  MPI_Win_free(&win);
}

int main(int argc, char** argv) {
  const int has_init = has_word(argc, argv, "init");
  const int has_window = has_word(argc, argv, "window");
  if (has_init) MPI_Init(&argc, &argv);
  MPI_Win of_world = MPI_WIN_NULL;
  void* base = NULL;
  if (has_window) MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &of_world);

  MPI_Session session = made_session(has_word(argc, argv, "strict"));
  MPI_Comm comm = communicator_of(session, has_word(argc, argv, "duplicate"));
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  for (int i = 0; i < 3; ++i) sum_is_kept(comm);
  MPI_Comm_free(&comm);
  REQUIRE_OR_EXIT(MPI_Session_finalize(&session) == MPI_SUCCESS);

  if (has_window) {
    MPI_Win_lock_all(0, of_world);
    MPI_Win_unlock_all(of_world);
    MPI_Win_free(&of_world);
  }
  if (rank == 0) puts("all holds");
  if (has_init) MPI_Finalize();
  return 0;
}

#else

int main(void) {
  fprintf(stderr, "this MPI has no sessions\n");
  return 77;
}

#endif
