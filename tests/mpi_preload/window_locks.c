/* The duties of the drop-in by the MPI standard, in C as its users write it. Run with LD_PRELOAD by
 * 2 ranks or more; every rank checks, and the first that finds a fault aborts with
 * its line. Arguments, each of which may be empty: the windows' info keys lockflight_lock,
 * passive_sync_mode and lockflight_lock_all.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int rank, ranks;

/* A launcher may drop what it has not forwarded when the launch is aborted. */
static void fail(int line, const char* what) {
  const struct timespec forwarded = {0, 200000000};
  fprintf(stderr, "rank %d: %s:%d: %s does not hold\n", rank, __FILE__, line, what);
  nanosleep(&forwarded, NULL);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

#define REQUIRE(holds)                    \
  do {                                    \
    if (!(holds)) fail(__LINE__, #holds); \
  } while (0)

/* MPICH never yields its processor while it waits: with more ranks than cores each handoff takes a
 * slice of the kernel's. */
enum { few_rounds = 6, rounds_of_many = 10 };
static int rounds = 50;

/* The MPIs' own locks, where it is they that serve. They hang where a process waits for a lock
 * while it holds another: MPICH 4.0 if others lock all, Open MPI 4.1's osc/pt2pt if it holds one of
 * another window. With and without the drop-in (docs/mpi.md), so this is left out. */
static int by_mpi = 0;

/* MPICH 4.0's device for UCX confuses windows whose memory shares a page: each has its own here. */
enum { page = 4096 };
static _Alignas(page) uint64_t own[page / sizeof(uint64_t)];
static _Alignas(page) uint64_t one[page / sizeof(uint64_t)];
static _Alignas(page) uint64_t other[page / sizeof(uint64_t)];
static _Alignas(page) uint64_t attached[page / sizeof(uint64_t)];

static int class_of(int code) {
  int what = MPI_SUCCESS;
  MPI_Error_class(code, &what);
  return what;
}

/* Every rank adds to every rank's counter under exclusive locks, then reads under shared ones, then
 * under lock_all. */
static void excludes(MPI_Win win, uint64_t* mine) {
  const MPI_Aint at = 0;
  for (int i = 0; i < rounds; ++i)
    for (int t = 0; t < ranks; ++t) {
      const int target = (rank + t) % ranks;
      uint64_t value = 0;
      MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win);
      MPI_Get(&value, 1, MPI_UINT64_T, target, at, 1, MPI_UINT64_T, win);
      MPI_Win_flush(target, win);
      ++value;
      MPI_Put(&value, 1, MPI_UINT64_T, target, at, 1, MPI_UINT64_T, win);
      MPI_Win_unlock(target, win);
    }
  MPI_Barrier(MPI_COMM_WORLD);
  for (int target = 0; target < ranks; ++target) {
    uint64_t value = 0;
    MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win);
    MPI_Get(&value, 1, MPI_UINT64_T, target, at, 1, MPI_UINT64_T, win);
    MPI_Win_unlock(target, win); /* the value is valid here */
    REQUIRE(value == (uint64_t)rounds * (uint64_t)ranks);
  }
  MPI_Win_lock_all(0, win);
  uint64_t value = 0;
  MPI_Get(&value, 1, MPI_UINT64_T, 0, at, 1, MPI_UINT64_T, win);
  MPI_Win_unlock_all(win);
  REQUIRE(value == (uint64_t)rounds * (uint64_t)ranks);
  if (mine != NULL) {
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
    REQUIRE(*(volatile uint64_t*)mine == (uint64_t)rounds * (uint64_t)ranks);
    MPI_Win_unlock(rank, win);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

/* lock_all excludes exclusive locks on every target, and they exclude it: half of the ranks write a
 * pair of words on one target each, the others read all of them. */
static void all_excludes_one(MPI_Win win) {
  for (int i = 0; i < rounds; ++i) {
    if (rank % 2 == 0) {
      const int target = (rank + i) % ranks;
      uint64_t pair[2] = {0, 0};
      MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win);
      MPI_Get(pair, 2, MPI_UINT64_T, target, 1, 2, MPI_UINT64_T, win);
      MPI_Win_flush(target, win);
      REQUIRE(pair[0] == pair[1]);
      ++pair[0];
      MPI_Put(&pair[0], 1, MPI_UINT64_T, target, 1, 1, MPI_UINT64_T, win);
      MPI_Win_flush(target, win);
      ++pair[1];
      MPI_Put(&pair[1], 1, MPI_UINT64_T, target, 2, 1, MPI_UINT64_T, win);
      MPI_Win_unlock(target, win);
    } else {
      MPI_Win_lock_all(0, win);
      for (int target = 0; target < ranks; ++target) {
        uint64_t pair[2] = {0, 0};
        MPI_Get(pair, 2, MPI_UINT64_T, target, 1, 2, MPI_UINT64_T, win);
        MPI_Win_flush(target, win);
        REQUIRE(pair[0] == pair[1]);
      }
      MPI_Win_unlock_all(win);
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

/* Exclusive locks, shared ones and lock_all in turn on one target and another, so that each meets
 * each: pairs of words that writers change one after the other. */
static void all_kinds_at_once(MPI_Win win) {
  for (int i = 0; i < few_rounds; ++i) {
    const int target = (rank + i) % ranks;
    uint64_t pair[2] = {0, 0};
    switch ((rank + i) % 3) {
      case 0:
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win);
        MPI_Get(pair, 2, MPI_UINT64_T, target, 1, 2, MPI_UINT64_T, win);
        MPI_Win_flush(target, win);
        REQUIRE(pair[0] == pair[1]);
        for (int w = 0; w < 2; ++w) {
          ++pair[w];
          MPI_Put(&pair[w], 1, MPI_UINT64_T, target, 1 + w, 1, MPI_UINT64_T, win);
          MPI_Win_flush(target, win);
        }
        MPI_Win_unlock(target, win);
        break;
      case 1:
        MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win);
        MPI_Get(pair, 2, MPI_UINT64_T, target, 1, 2, MPI_UINT64_T, win);
        MPI_Win_unlock(target, win);
        REQUIRE(pair[0] == pair[1]);
        break;
      default:
        MPI_Win_lock_all(0, win);
        MPI_Get(pair, 2, MPI_UINT64_T, target, 1, 2, MPI_UINT64_T, win);
        MPI_Win_unlock_all(win);
        REQUIRE(pair[0] == pair[1]);
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

/* One process shares a target and holds another exclusively: neither waits for the other. */
static void shares_one_and_holds_another(MPI_Win win) {
  if (rank == 0) {
    for (int i = 0; i < few_rounds; ++i) {
      MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
      MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win);
      MPI_Win_unlock(0, win);
      MPI_Win_unlock(1, win);
    }
  } else {
    for (int i = 0; i < few_rounds; ++i) {
      MPI_Win_lock_all(0, win);
      MPI_Win_unlock_all(win);
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

/* One process may hold several targets, also while another wants all. */
static void several_targets(MPI_Win win) {
  for (int i = 0; i < rounds; ++i) {
    if (rank == 0) {
      for (int target = 0; target < ranks; ++target)
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win);
      for (int target = 0; target < ranks; ++target) MPI_Win_unlock(target, win);
    } else {
      MPI_Win_lock_all(0, win);
      MPI_Win_unlock_all(win);
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

static void misuse(MPI_Win win) {
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  REQUIRE(class_of(MPI_Win_unlock(0, win)) == MPI_ERR_RMA_SYNC);
  REQUIRE(class_of(MPI_Win_unlock_all(win)) == MPI_ERR_RMA_SYNC);
  REQUIRE(class_of(MPI_Win_lock(MPI_LOCK_SHARED, ranks, 0, win)) == MPI_ERR_RANK);
  REQUIRE(class_of(MPI_Win_lock(MPI_LOCK_SHARED, -77, 0, win)) == MPI_ERR_RANK);
  REQUIRE(class_of(MPI_Win_lock(-1, 0, 0, win)) == MPI_ERR_LOCKTYPE);
  REQUIRE(MPI_Win_lock(MPI_LOCK_SHARED, MPI_PROC_NULL, 0, win) == MPI_SUCCESS);
  REQUIRE(MPI_Win_unlock(MPI_PROC_NULL, win) == MPI_SUCCESS);
  REQUIRE(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win) == MPI_SUCCESS);
  REQUIRE(class_of(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win)) == MPI_ERR_RMA_SYNC);
  REQUIRE(class_of(MPI_Win_lock_all(0, win)) == MPI_ERR_RMA_SYNC);
  REQUIRE(MPI_Win_unlock(rank, win) == MPI_SUCCESS);
  MPI_Win_set_errhandler(win, MPI_ERRORS_ARE_FATAL);
  MPI_Barrier(MPI_COMM_WORLD);
}

/* The same window with fences and with post, start, complete and wait, and then locked again. */
static void active_target(MPI_Win win) {
  uint64_t value = 4711;
  const int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
  MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
  MPI_Put(&value, 1, MPI_UINT64_T, next, 3, 1, MPI_UINT64_T, win);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, win);

  MPI_Group all, to, from;
  MPI_Win_get_group(win, &all);
  MPI_Group_incl(all, 1, &next, &to);
  MPI_Group_incl(all, 1, &previous, &from);
  MPI_Win_post(from, 0, win);
  MPI_Win_start(to, 0, win);
  MPI_Put(&value, 1, MPI_UINT64_T, next, 4, 1, MPI_UINT64_T, win);
  MPI_Win_complete(win);
  MPI_Win_wait(win);
  MPI_Group_free(&all);
  MPI_Group_free(&to);
  MPI_Group_free(&from);

  uint64_t got[2] = {0, 0};
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win);
  MPI_Get(got, 2, MPI_UINT64_T, rank, 3, 2, MPI_UINT64_T, win);
  MPI_Win_unlock(rank, win);
  REQUIRE(got[0] == value && got[1] == value);
  MPI_Barrier(MPI_COMM_WORLD);
}

/* With NOCHECK no other rank has the lock, and none waits. */
static void nocheck(MPI_Win win) {
  MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
  MPI_Win_unlock_all(win);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, MPI_MODE_NOCHECK, win);
    MPI_Win_unlock(0, win);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

static void says(MPI_Win win, const char* key, const char* expected) {
  char value[MPI_MAX_INFO_VAL + 1] = "";
  int found = 0;
  MPI_Info info;
  MPI_Win_get_info(win, &info);
  MPI_Info_get(info, key, MPI_MAX_INFO_VAL, value, &found);
  MPI_Info_free(&info);
  REQUIRE(found && strcmp(value, expected) == 0);
}

/* The SCC paper's names for what a lock prefers choose one and can be read back. */
static void sync_modes(void) {
  static const char* const modes[][2] = {{"writer-precedence", "mcs-rw-wp"},
                                         {"reader-precedence", "mcs-rw-rp"},
                                         {"fair", "mcs-rw-fair"},
                                         {"full-support", NULL}};
  for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); ++i) {
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "passive_sync_mode", modes[i][0]);
    void* base = NULL;
    MPI_Win win;
    MPI_Win_allocate(64, 1, info, MPI_COMM_WORLD, &base, &win);
    MPI_Info_free(&info);
    MPI_Win_get_info(win, &info);
    char value[MPI_MAX_INFO_VAL + 1] = "";
    int found = 0;
    MPI_Info_get(info, "lockflight_lock", MPI_MAX_INFO_VAL, value, &found);
    /* The default, or the queue of a window whose locks MPI has. */
    REQUIRE(found && (modes[i][1] != NULL
                          ? strcmp(value, modes[i][1]) == 0
                          : strcmp(value, "flight-rw") == 0 || strcmp(value, "flight") == 0));
    MPI_Info_get(info, "passive_sync_mode", MPI_MAX_INFO_VAL, value, &found);
    REQUIRE(found && strcmp(value, modes[i][0]) == 0);
    MPI_Info_free(&info);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    MPI_Win_unlock(0, win);
    MPI_Win_free(&win);
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  by_mpi = argc > 3 && strcmp(argv[3], "mpi") == 0;
  if (ranks > 2) rounds = rounds_of_many;
  const char* const lock = argc > 1 ? argv[1] : "";
  const char* const mode = argc > 2 ? argv[2] : "";
  const char* const lock_all = argc > 3 ? argv[3] : "";
  /* A multiple of 64 bytes: MPICH 4.0 misses the memory of the other ranks with fewer. */
  enum { words = 8 };
  const MPI_Aint bytes = words * sizeof(uint64_t);
  const int unit = sizeof(uint64_t);

  MPI_Info info;
  MPI_Info_create(&info);
  if (*lock != '\0') MPI_Info_set(info, "lockflight_lock", lock);
  if (*mode != '\0') MPI_Info_set(info, "passive_sync_mode", mode);
  if (*lock_all != '\0') MPI_Info_set(info, "lockflight_lock_all", lock_all);

  uint64_t* base = NULL;
  MPI_Win win;
  MPI_Win_allocate(bytes, unit, info, MPI_COMM_WORLD, &base, &win);
  memset(base, 0, (size_t)bytes);
  MPI_Win_fence(0, win);
  if (*lock != '\0')
    says(win, "lockflight_lock", lock);
  else
    sync_modes();
  if (*lock_all != '\0') says(win, "lockflight_lock_all", lock_all);
  misuse(win);
  nocheck(win);
  excludes(win, base);
  all_excludes_one(win);
  all_kinds_at_once(win);
  if (!by_mpi) {
    several_targets(win);
    shares_one_and_holds_another(win);
  }
  active_target(win);
  MPI_Win_free(&win);

  MPI_Win_create(own, bytes, unit, info, MPI_COMM_WORLD, &win);
  MPI_Win_fence(0, win);
  excludes(win, own);
  all_excludes_one(win);
  MPI_Win_free(&win);

  /* A communicator of some, and two windows at a time. */
  MPI_Comm some;
  /* Open MPI 4.1 makes no window on a communicator of one, and confuses windows that are made at
   * the same time on different communicators of the same number: one half after the other. */
  const int half = ranks < 4 ? 0 : rank % 2;
  MPI_Comm_split(MPI_COMM_WORLD, half, 0, &some);
  MPI_Win first = MPI_WIN_NULL, second = MPI_WIN_NULL;
  for (int turn = 0; turn < 2; ++turn) {
    if (turn == half) {
      MPI_Win_create(one, sizeof one, 1, info, some, &first);
      MPI_Win_create(other, sizeof other, 1, MPI_INFO_NULL, some, &second);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  for (int i = 0; i < rounds; ++i) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, first);
    if (!by_mpi) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, second);
    const uint64_t add = 1;
    MPI_Accumulate(&add, 1, MPI_UINT64_T, 0, 0, 1, MPI_UINT64_T, MPI_SUM, first);
    if (by_mpi) {
      MPI_Win_unlock(0, first);
      MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, second);
    }
    MPI_Accumulate(&add, 1, MPI_UINT64_T, 0, 0, 1, MPI_UINT64_T, MPI_SUM, second);
    if (!by_mpi) MPI_Win_unlock(0, first);
    MPI_Win_unlock(0, second);
  }
  MPI_Barrier(some);
  int size = 0, place = 0;
  MPI_Comm_size(some, &size);
  MPI_Comm_rank(some, &place);
  if (place == 0) {
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, first);
    REQUIRE(one[0] == (uint64_t)rounds * (uint64_t)size);
    MPI_Win_unlock(0, first);
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, second);
    REQUIRE(other[0] == (uint64_t)rounds * (uint64_t)size);
    MPI_Win_unlock(0, second);
  }
  MPI_Comm_free(&some); /* before its windows, which is allowed */
  MPI_Win_free(&first);
  MPI_Win_free(&second);

  /* Shared and dynamic windows are made and locked like any. */
  MPI_Comm machine;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine);
  MPI_Win_allocate_shared(bytes, unit, info, machine, &base, &win);
  MPI_Win_lock_all(0, win);
  MPI_Win_unlock_all(win);
  MPI_Comm_size(machine, &size);
  uint64_t* first_base = NULL;
  MPI_Aint there = 0;
  int its_unit = 0;
  MPI_Win_shared_query(win, 0, &there, &its_unit, &first_base);
  MPI_Comm_rank(machine, &place);
  if (place == 0) first_base[0] = 0;
  MPI_Barrier(machine);
  for (int i = 0; i < rounds; ++i) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    first_base[0] = first_base[0] + 1; /* by load and store */
    MPI_Win_unlock(0, win);
  }
  MPI_Barrier(machine);
  MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
  REQUIRE(first_base[0] == (uint64_t)rounds * (uint64_t)size);
  MPI_Win_unlock(0, win);
  MPI_Win_free(&win);
  MPI_Comm_free(&machine);

  MPI_Win_create_dynamic(info, MPI_COMM_WORLD, &win);
  MPI_Win_attach(win, attached, sizeof attached);
  MPI_Aint address = 0;
  MPI_Get_address(attached, &address);
  MPI_Bcast(&address, 1, MPI_AINT, 0, MPI_COMM_WORLD);
  for (int i = 0; i < rounds; ++i) {
    const uint64_t add = 1;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    MPI_Accumulate(&add, 1, MPI_UINT64_T, 0, address, 1, MPI_UINT64_T, MPI_SUM, win);
    MPI_Win_unlock(0, win);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    REQUIRE(attached[0] == (uint64_t)rounds * (uint64_t)ranks);
    MPI_Win_unlock(0, win);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_detach(win, attached);
  MPI_Win_free(&win);

  MPI_Info_free(&info);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) puts("all holds");
  MPI_Finalize();
  return 0;
}
