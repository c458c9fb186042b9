/* Many windows at once, and many one after the other. Prints "all holds" and what was seen.
 *
 * usage: many_windows open COUNT    so many are open, over several communicators, and locked
 *        many_windows again COUNT   so many are made and freed; neither communicators nor memory
 *                                   nor files in /dev/shm grow
 *        many_windows limit SERVED  MPI has few communicators left when a window is made; SERVED is
 *                                   whether the drop-in has it all the same. Where MPI has more
 *                                   than 4,096 communicators the last line is "no limit"
 *        many_windows groups COUNT  so many groups of processes have a window, one after the other
 *        many_windows dropped COUNT so often the first rank drops a group while the ranks agree
 *                                   about a window of it
 *        many_windows held COUNT    so often one is made or freed, as COUNT seeds the choices,
 *                                   sometimes by a rank that has locked all; MPICH refuses that
 *        many_windows locks COUNT   so many are made with locks of different names, some of them
 *                                   open at the same time; each has the lock that its first rank
 *                                   names, and no state of an earlier window's lock
 */
#include <dirent.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "checks.h"

static int rank, ranks;

static void require(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "rank %d: %s\n", rank, what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static int is_served(MPI_Win win) {
  MPI_Info info;
  char value[MPI_MAX_INFO_VAL + 1];
  int found = 0;
  MPI_Win_get_info(win, &info);
  MPI_Info_get(info, "lockflight_lock", MPI_MAX_INFO_VAL, value, &found);
  MPI_Info_free(&info);
  return found;
}

static MPI_Win made_with(MPI_Info info, MPI_Comm all, uint64_t** base) {
  MPI_Win win;
  MPI_Win_allocate(sizeof(uint64_t), sizeof(uint64_t), info, all, base, &win);
  **base = 0;
  MPI_Barrier(all);
  return win;
}

static MPI_Win made(MPI_Comm all, uint64_t** base) { return made_with(MPI_INFO_NULL, all, base); }

static void require_sum(MPI_Win win, MPI_Comm all, uint64_t sum) {
  uint64_t now = 0;
  MPI_Barrier(all);
  MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
  MPI_Get(&now, 1, MPI_UINT64_T, 0, 0, 1, MPI_UINT64_T, win);
  MPI_Win_unlock(0, win);
  require(now == sum, "an addition is lost, or another window's lock was in the way");
}

/* Of equal groups: the world, a copy of it, and the world backwards. */
static void copies_of_world(MPI_Comm of[3]) {
  of[0] = MPI_COMM_WORLD;
  MPI_Comm_dup(MPI_COMM_WORLD, &of[1]);
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &of[2]);
}

static void open_at_once(int count) {
  MPI_Comm of[3];
  MPI_Win* win = malloc((size_t)count * sizeof *win);
  uint64_t** base = malloc((size_t)count * sizeof *base);
  copies_of_world(of);
  for (int i = 0; i < count; ++i) {
    win[i] = made(of[i % 3], &base[i]);
    require(is_served(win[i]), "a window has MPI's locks");
  }
  /* Locks of two windows at a time: each has a lock of its own. */
  for (int i = 0; i + 1 < count; ++i) {
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win[i]);
    add_one(win[i + 1]);
    MPI_Win_unlock(0, win[i]);
  }
  for (int i = 1; i < count; ++i) require_sum(win[i], of[i % 3], (uint64_t)ranks);
  for (int i = 0; i < count; i += 2) MPI_Win_free(&win[i]);
  /* In the places of those that are gone. */
  for (int i = 0; i < count && i < 64; i += 2) {
    win[i] = made(of[0], &base[i]);
    add_one(win[i]);
    require_sum(win[i], of[0], (uint64_t)ranks);
    MPI_Win_free(&win[i]);
  }
  for (int i = 1; i < count; i += 2) {
    add_one(win[i]);
    require_sum(win[i], of[i % 3], 2 * (uint64_t)ranks);
    MPI_Win_free(&win[i]);
  }
  MPI_Comm_free(&of[1]);
  MPI_Comm_free(&of[2]);
  free(win);
  free(base);
}

static long files_in_shared_memory(void) {
  long files = 0;
  DIR* const folder = opendir("/dev/shm");
  if (folder == NULL) return 0;
  while (readdir(folder) != NULL) ++files;
  closedir(folder);
  return files;
}

static long resident_kib(void) {
  long total = 0, resident = 0;
  FILE* const file = fopen("/proc/self/statm", "r");
  require(file != NULL && fscanf(file, "%ld %ld", &total, &resident) == 2, "no /proc/self/statm");
  fclose(file);
  return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static void again_and_again(int count) {
  long files = 0, kib = 0;
  for (int i = 0; i < count; ++i) {
    uint64_t* base;
    MPI_Win win = made(MPI_COMM_WORLD, &base);
    require(is_served(win), "a window has MPI's locks");
    add_one(win);
    require_sum(win, MPI_COMM_WORLD, (uint64_t)ranks);
    MPI_Win_free(&win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (i != count / 10) continue;
    files = files_in_shared_memory();
    kib = resident_kib();
  }
  const long more_files = files_in_shared_memory() - files;
  const long more_kib = resident_kib() - kib;
  // Other programs have files there, too, which come and go; a leak is a file for each window.
  require(more_files < count / 2, "files are left in /dev/shm");
  /* The MPIs' own memory moves a little. */
  if (more_kib >= 4096) fprintf(stderr, "rank %d: %ld KiB more\n", rank, more_kib);
  require(more_kib < 4096, "memory grows");
}

/* Whether MPI came to an end of its communicators: MPICH has 2,048, Intel MPI more than one can
 * wait for. */
static int few_communicators_left(int served) {
  enum { most = 4096, left = 6 };
  static MPI_Comm held[most];
  int count = 0;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  while (count < most && MPI_Comm_dup(MPI_COMM_WORLD, &held[count]) == MPI_SUCCESS) ++count;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  const int has_limit = count < most;
  for (int i = 0; has_limit && i < left; ++i) MPI_Comm_free(&held[--count]);
  for (int i = 0; has_limit && i < 2; ++i) {
    uint64_t* base;
    MPI_Win win = made(MPI_COMM_WORLD, &base);
    require(is_served(win) == served, served ? "a window on one host has MPI's locks"
                                             : "there were communicators for the drop-in");
    add_one(win);
    require_sum(win, MPI_COMM_WORLD, (uint64_t)ranks);
    MPI_Win_free(&win);
  }
  while (count > 0) MPI_Comm_free(&held[--count]);
  uint64_t* base;
  MPI_Win win = made(MPI_COMM_WORLD, &base);
  require(is_served(win), "a window has MPI's locks though there are communicators again");
  MPI_Win_free(&win);
  return has_limit;
}

/* The world forwards and backwards by turns, and each rank alone. */
static void many_groups(int count) {
  for (int i = 0; i < count; ++i) {
    MPI_Comm all;
    MPI_Comm_split(MPI_COMM_WORLD, i % 3 == 2 ? rank : 0, (i * 7 + rank * (i % 5)) % ranks, &all);
    uint64_t* base;
    int members = 0;
    MPI_Comm_size(all, &members);
    MPI_Win win = made(all, &base);
    require(is_served(win), "a window has MPI's locks");
    add_one(win);
    require_sum(win, all, (uint64_t)members);
    MPI_Comm_free(&all);
    MPI_Win_free(&win);
  }
}

static void require_lock(MPI_Win win, const char* name) {
  MPI_Info info;
  char value[MPI_MAX_INFO_VAL + 1] = "";
  int found = 0;
  MPI_Win_get_info(win, &info);
  MPI_Info_get(info, "lockflight_lock", MPI_MAX_INFO_VAL, value, &found);
  MPI_Info_free(&info);
  require(strcmp(value, name) == 0, "a window has another lock than its first rank wants");
}

/* Rank 0 is in more groups without windows than a first rank keeps, but is the first of one alone:
 * the world. The others are in fewer. A window of the world with other locks than the last one had
 * makes rank 0 give back that one's, and with them drop the world's group. */
static void dropped_among_many_groups(int count) {
  static const int members[][3] = {{1, 0, -1}, {2, 0, -1}, {3, 0, -1}, {1, 2, 0}, {2, 1, 0},
                                   {1, 3, 0},  {3, 1, 0},  {2, 3, 0},  {3, 2, 0}};
  enum { groups = sizeof members / sizeof members[0] };
  require(ranks == 4, "dropped needs four ranks");
  MPI_Comm of[groups];
  for (int g = 0; g < groups; ++g) {
    int place = -1;
    for (int i = 0; i < 3; ++i)
      if (members[g][i] == rank) place = i;
    MPI_Comm_split(MPI_COMM_WORLD, place < 0 ? MPI_UNDEFINED : 0, place, &of[g]);
  }
  MPI_Info other;
  MPI_Info_create(&other);
  MPI_Info_set(other, "lockflight_lock", "d-mcs");
  for (int i = 0; i < count; ++i) {
    uint64_t* base;
    MPI_Win win[groups];
    for (int g = 0; g < groups; ++g)
      if (of[g] != MPI_COMM_NULL) win[g] = made(of[g], &base);
    MPI_Win world = made(MPI_COMM_WORLD, &base);
    require(is_served(world), "a window has MPI's locks");
    MPI_Win_free(&world);
    for (int g = 0; g < groups; ++g)
      if (of[g] != MPI_COMM_NULL) MPI_Win_free(&win[g]);
    world = made_with(other, MPI_COMM_WORLD, &base);
    require_lock(world, "d-mcs");
    add_one(world);
    require_sum(world, MPI_COMM_WORLD, (uint64_t)ranks);
    MPI_Win_free(&world);
  }
  MPI_Info_free(&other);
  for (int g = 0; g < groups; ++g)
    if (of[g] != MPI_COMM_NULL) MPI_Comm_free(&of[g]);
}

/* Now and then two windows that are open swap places, so that the first made is not the first
 * freed. */
static void different_locks(int count) {
  enum { open = 6, often = 7 };
  static const char* const names[] = {"flight-rw", "d-mcs", "flight-rw", "spin", "rma-rw"};
  enum { kinds = sizeof names / sizeof names[0] };
  uint64_t* base;
  MPI_Win win[open];
  for (int i = 0; i < count; ++i) {
    MPI_Win* const here = &win[i % open];
    if (i >= open) {
      if (i % often == 0) {
        const MPI_Win other = win[(i + 2) % open];
        win[(i + 2) % open] = *here;
        *here = other;
      }
      add_one(*here);
      require_sum(*here, MPI_COMM_WORLD, 2 * (uint64_t)ranks);
      MPI_Win_free(here);
    }
    /* For some windows the other ranks name another lock, which does not count. */
    const int kind = (i / 3) % kinds;
    const int named = rank > 0 && i % 4 == 1 ? (kind + 1) % kinds : kind;
    MPI_Info info = MPI_INFO_NULL;
    if (named > 0) {
      MPI_Info_create(&info);
      MPI_Info_set(info, "lockflight_lock", names[named]);
    }
    *here = made_with(info, MPI_COMM_WORLD, &base);
    if (info != MPI_INFO_NULL) MPI_Info_free(&info);
    require_lock(*here, names[kind]);
    add_one(*here);
    require_sum(*here, MPI_COMM_WORLD, (uint64_t)ranks);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  for (int i = 0; i < open && i < count; ++i) MPI_Win_free(&win[i]);
}

/* A rank that frees a window with locks keeps nothing of it, and the others do. */
static void freed_with_locks(int count) {
  enum { open = 12 };
  MPI_Win win[open];
  uint64_t* base;
  unsigned state = (unsigned)count; /* the same choices on all ranks */
  for (int w = 0; w < open; ++w) win[w] = MPI_WIN_NULL;
  for (int i = 0; i < count; ++i) {
    state = state * 1103515245u + 12345u;
    MPI_Win* const here = &win[(state >> 16) % open];
    MPI_Barrier(MPI_COMM_WORLD);
    if (*here == MPI_WIN_NULL) {
      *here = made(MPI_COMM_WORLD, &base);
      add_one(*here);
      require_sum(*here, MPI_COMM_WORLD, (uint64_t)ranks);
      continue;
    }
    if ((state >> 20) % 3 == 0 && (int)((state >> 24) % (unsigned)ranks) == rank)
      MPI_Win_lock_all(0, *here);
    MPI_Win_free(here);
  }
  for (int w = 0; w < open; ++w)
    if (win[w] != MPI_WIN_NULL) MPI_Win_free(&win[w]);
}

int main(int argc, char** argv) {
  int level = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SINGLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const char* const what = argc > 1 ? argv[1] : "";
  const int count = argc > 2 ? atoi(argv[2]) : 100;
  const double begun = MPI_Wtime();
  if (strcmp(what, "open") == 0) open_at_once(count);
  if (strcmp(what, "again") == 0) again_and_again(count);
  const int is_as_asked = strcmp(what, "limit") != 0 || few_communicators_left(count);
  if (strcmp(what, "groups") == 0) many_groups(count);
  if (strcmp(what, "locks") == 0) different_locks(count);
  if (strcmp(what, "held") == 0) freed_with_locks(count);
  if (strcmp(what, "dropped") == 0) dropped_among_many_groups(count);
  require(strcmp(what, "open") == 0 || strcmp(what, "again") == 0 || strcmp(what, "limit") == 0 ||
              strcmp(what, "groups") == 0 || strcmp(what, "locks") == 0 ||
              strcmp(what, "dropped") == 0 || strcmp(what, "held") == 0,
          "what? (accepted: open, again, limit, groups, locks, dropped, held)");
  if (rank == 0) fprintf(stderr, "%s %d: %.1f s\n", what, count, MPI_Wtime() - begun);
  /* Before the end: MPICH 4.0 over TCP may hang in MPI_Finalize (docs/mpi.md). */
  if (rank == 0) printf(is_as_asked ? "all holds\n" : "no limit\n");
  fflush(stdout);
  MPI_Finalize();
  return 0;
}
