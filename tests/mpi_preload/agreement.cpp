// Windows whose locks cannot be made on rank 1 alone: all ranks go on with MPI's own, or none does.
// Run by 2 ranks or more, `agreement WHAT`:
//
//   nothing   nothing fails here; the launcher may have given the ranks different settings
//   create    where nodes are several, a call of MPI that the locks' memory comes from fails:
//             MPI_Win_create
//   share     on one host, a rank cannot open the first rank's memory
//   later     the same of the second segment, when many windows are open that lie in the first
//   offer     the first rank has no descriptor for the first window's memory; the second one is
//             fine
//   memory    each allocation once that comes after MPI's part, until none is left that could fail:
//             of the first window of the group, of one whose group is there, and of one that gets
//             the locks of a window that was freed
//   calls     nothing fails. Rank 0 says on standard error how many collective calls of MPI the
//             drop-in makes for the first window, for a second one while that is open, and for a
//             third one when both were freed
//
// The drop-in's calls come here first, since the names PMPI_X are this program's. What fails has
// taken part in the call before, since MPI itself would hang otherwise; so there is a window in
// truth, which this program frees when all is over, as MPI_Finalize wants it.
//
// Rank 0 says how many windows keep MPI's locks and how many have others.
#include <dlfcn.h>
#include <fcntl.h>
#include <mpi.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "checks.h"

namespace {

enum class fault { none, create, share, later, offer, memory };

constinit fault what = fault::none;
constinit bool is_chosen = false;  // this rank fails
constinit bool is_made = false;    // a window of the program is being made
constinit int to_fail = 0;         // the number of the allocation, from 1
constinit int allocations = 0;     // since MPI's part was over
constinit bool is_counting = false;
constinit int segments_opened = 0;
constinit int collective_calls = 0;  // the drop-in's for the last window

MPI_Win in_truth = MPI_WIN_NULL;  // what a call made that has failed on some rank

bool fails(fault here) { return is_made && is_chosen && what == here; }

/// The result of a call on this rank.
int after(fault here, int code, MPI_Win made) {
  if (is_made && what == here) in_truth = made;
  return fails(here) ? MPI_ERR_NO_MEM : code;
}

int rank = 0;
int ranks = 0;

void require(bool holds, const char* text) {
  if (holds) return;
  std::fprintf(stderr, "rank %d: %s\n", rank, text);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

bool serves(MPI_Win win) {
  MPI_Info info = MPI_INFO_NULL;
  MPI_Win_get_info(win, &info);
  char value[MPI_MAX_INFO_VAL + 1] = {};
  int found = 0;
  MPI_Info_get(info, "lockflight_lock", MPI_MAX_INFO_VAL, value, &found);
  MPI_Info_free(&info);
  return found != 0;
}

/// Windows that stay open.
constexpr int most_open = 100;
MPI_Win still_open[most_open];
int open_windows = 0;

/// Makes a window and uses it; whether the drop-in has it, which all ranks see alike.
bool makes_a_window(bool stays_open) {
  std::uint64_t* base = nullptr;
  MPI_Win win = MPI_WIN_NULL;
  is_made = true;
  allocations = 0;
  collective_calls = 0;
  MPI_Win_allocate(sizeof *base, sizeof *base, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
  is_made = is_counting = false;

  const int mine = serves(win) ? 1 : 0;
  int least = 0;
  int most = 0;
  MPI_Allreduce(&mine, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  MPI_Allreduce(&mine, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  require(least == most, "has other locks than another rank");

  *base = 0;
  MPI_Win_fence(0, win);
  constexpr int rounds = 20;
  for (int i = 0; i < rounds; ++i) add_one(win);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
  if (rank == 0)
    require(*base == static_cast<std::uint64_t>(rounds * ranks), "increments are lost");
  MPI_Win_unlock(rank, win);
  if (stays_open)
    still_open[open_windows++] = win;
  else
    MPI_Win_free(&win);
  return mine != 0;
}

void frees_open_windows() {
  while (open_windows > 0) MPI_Win_free(&still_open[--open_windows]);
}

void says_collective_calls() {
  makes_a_window(/*stays_open=*/true);
  const int first = collective_calls;
  makes_a_window(/*stays_open=*/true);
  const int second = collective_calls;
  frees_open_windows();
  makes_a_window(/*stays_open=*/false);
  if (rank == 0)
    std::fprintf(stderr, "collective calls: %d, %d, %d\n", first, second, collective_calls);
}

/// Windows that stay open while the group's memory grows by a segment that cannot be shared. All of
/// them are locked, and those that are made after they were freed.
void opens_many() {
  constexpr int many = 600;
  static std::uint64_t* base[many];
  static MPI_Win win[many];
  is_made = true;
  for (int i = 0; i < many; ++i) {
    MPI_Win_allocate(sizeof **base, sizeof **base, MPI_INFO_NULL, MPI_COMM_WORLD, &base[i],
                     &win[i]);
    *base[i] = 0;
  }
  is_made = false;
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < many; ++i) {
    require(serves(win[i]), "a window keeps MPI's locks");
    const std::uint64_t one = 1;
    std::uint64_t before = 0;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win[i]);
    MPI_Fetch_and_op(&one, &before, MPI_UINT64_T, 0, 0, MPI_SUM, win[i]);
    MPI_Win_unlock(0, win[i]);
  }
  require(!is_chosen || segments_opened == 2, "the windows lie in one segment");
  for (MPI_Win& one : win) MPI_Win_free(&one);
}

}  // namespace

// ---- what fails ----

/// The function of that name behind this program.
template <class Function>
Function* behind(Function&, const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

extern "C" int PMPI_Iallreduce(const void* mine, void* sum, int count, MPI_Datatype type, MPI_Op op,
                               MPI_Comm all, MPI_Request* request) {
  static auto* const mpis = behind(PMPI_Iallreduce, "PMPI_Iallreduce");
  if (is_made) ++collective_calls;
  return mpis(mine, sum, count, type, op, all, request);
}

extern "C" int PMPI_Ibcast(void* values, int count, MPI_Datatype type, int from, MPI_Comm all,
                           MPI_Request* request) {
  static auto* const mpis = behind(PMPI_Ibcast, "PMPI_Ibcast");
  if (is_made) ++collective_calls;
  return mpis(values, count, type, from, all, request);
}

// The first call of the drop-in's when MPI's part is done.
extern "C" int PMPI_Comm_group(MPI_Comm of, MPI_Group* group) {
  static auto* const mpis = behind(PMPI_Comm_group, "PMPI_Comm_group");
  if (fails(fault::memory)) is_counting = true;
  return mpis(of, group);
}

extern "C" int open(const char* path, int how, ...) {
  va_list more;
  va_start(more, how);
  const auto mode = va_arg(more, mode_t);
  va_end(more);
  const bool is_segment =
      is_made && std::strncmp(path, "/proc/", 6) == 0 && std::strstr(path, "/fd/") != nullptr;
  if (is_segment && (fails(fault::share) || (++segments_opened == 2 && fails(fault::later)))) {
    errno = EACCES;
    return -1;
  }
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, how, mode));
}

extern "C" int PMPI_Win_create(void* base, MPI_Aint size, int unit, MPI_Info info, MPI_Comm all,
                               MPI_Win* win) {
  static auto* const mpis = behind(PMPI_Win_create, "PMPI_Win_create");
  const int made = mpis(base, size, unit, info, all, win);
  return after(fault::create, made, *win);
}

extern "C" int memfd_create(const char* name, unsigned how) {
  static bool has_failed = false;
  if (is_made && what == fault::offer && !has_failed) {
    has_failed = true;
    errno = EMFILE;
    return -1;
  }
  return static_cast<int>(syscall(SYS_memfd_create, name, how));
}

void* operator new(std::size_t bytes) {
  if (is_counting && ++allocations == to_fail) throw std::bad_alloc();
  if (void* const made = std::malloc(bytes == 0 ? 1 : bytes)) return made;
  throw std::bad_alloc();
}
void operator delete(void* what_was_made) noexcept { std::free(what_was_made); }
void operator delete(void* what_was_made, std::size_t) noexcept { std::free(what_was_made); }

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  is_chosen = rank == 1;
  const char* const fails_by = argc > 1 ? argv[1] : "nothing";
  if (std::strcmp(fails_by, "create") == 0) what = fault::create;
  if (std::strcmp(fails_by, "share") == 0) what = fault::share;
  if (std::strcmp(fails_by, "later") == 0) what = fault::later;
  if (std::strcmp(fails_by, "offer") == 0) what = fault::offer;
  if (what == fault::later) opens_many();
  if (std::strcmp(fails_by, "calls") == 0) says_collective_calls();
  if (std::strcmp(fails_by, "memory") == 0) what = fault::memory;

  int theirs = 0;
  int ours = 0;
  const int rounds = what == fault::memory ? 3 : 1;
  for (int round = 0; round < rounds; ++round) {
    const bool stay_open = round == 1;
    for (int i = 0; i < most_open; ++i) {
      to_fail = i + 1;
      ++(makes_a_window(stay_open) ? ours : theirs);
      int is_last = what == fault::offer    ? i
                    : what == fault::memory ? (allocations < to_fail ? 1 : 0)
                                            : 1;
      MPI_Bcast(&is_last, 1, MPI_INT, 1, MPI_COMM_WORLD);
      if (is_last != 0) break;
    }
    frees_open_windows();
  }
  if (rank == 0) std::printf("%d keep MPI's locks, %d have others\n", theirs, ours);
  if (in_truth != MPI_WIN_NULL) MPI_Win_free(&in_truth);
  MPI_Finalize();
  return 0;
}
