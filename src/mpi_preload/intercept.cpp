// The calls of MPI that come here instead: the profiling interface (MPI-3.1, section 14.2). What
// makes and frees windows, and what synchronises them passively.
#include <mpi.h>

#include "mpi_preload/settings.hpp"
#include "mpi_preload/windows.hpp"

namespace {

namespace preload = lockflight::mpi_preload;

/// An error goes where the window's errors go, as MPI's own would.
int raised(MPI_Win win, int code) {
  if (code != MPI_SUCCESS) PMPI_Win_call_errhandler(win, code);
  return code;
}

/// Before MPI's own call that begins an epoch with an active target.
int making_way(MPI_Win win) {
  preload::window* const ours = preload::find(win);
  return ours != nullptr ? raised(win, ours->make_way_for_active_target()) : MPI_SUCCESS;
}

int adopted(int made, MPI_Comm group, MPI_Info info, const MPI_Win* win) {
  if (made == MPI_SUCCESS) preload::adopt(*win, group, info);
  return made;
}

}  // namespace

#pragma GCC visibility push(default)

extern "C" {

int MPI_Win_create(void* base, MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm,
                   MPI_Win* win) {
  return adopted(PMPI_Win_create(base, size, unit, info, comm, win), comm, info, win);
}

int MPI_Win_allocate(MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void* base,
                     MPI_Win* win) {
  return adopted(PMPI_Win_allocate(size, unit, info, comm, base, win), comm, info, win);
}

int MPI_Win_allocate_shared(MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void* base,
                            MPI_Win* win) {
  return adopted(PMPI_Win_allocate_shared(size, unit, info, comm, base, win), comm, info, win);
}

int MPI_Win_create_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win* win) {
  return adopted(PMPI_Win_create_dynamic(info, comm, win), comm, info, win);
}

int MPI_Win_free(MPI_Win* win) {
  preload::forget(*win);
  return PMPI_Win_free(win);
}

int MPI_Win_lock(int type, int rank, int assertion, MPI_Win win) {
  preload::window* const ours = preload::find(win);
  return ours != nullptr ? raised(win, ours->lock(type, rank, assertion))
                         : PMPI_Win_lock(type, rank, assertion, win);
}

int MPI_Win_unlock(int rank, MPI_Win win) {
  preload::window* const ours = preload::find(win);
  return ours != nullptr ? raised(win, ours->unlock(rank)) : PMPI_Win_unlock(rank, win);
}

int MPI_Win_lock_all(int assertion, MPI_Win win) {
  preload::window* const ours = preload::find(win);
  return ours != nullptr ? raised(win, ours->lock_all(assertion))
                         : PMPI_Win_lock_all(assertion, win);
}

int MPI_Win_unlock_all(MPI_Win win) {
  preload::window* const ours = preload::find(win);
  return ours != nullptr ? raised(win, ours->unlock_all()) : PMPI_Win_unlock_all(win);
}

int MPI_Win_fence(int assertion, MPI_Win win) {
  const int ready = making_way(win);
  return ready == MPI_SUCCESS ? PMPI_Win_fence(assertion, win) : ready;
}

int MPI_Win_start(MPI_Group group, int assertion, MPI_Win win) {
  const int ready = making_way(win);
  return ready == MPI_SUCCESS ? PMPI_Win_start(group, assertion, win) : ready;
}

int MPI_Win_post(MPI_Group group, int assertion, MPI_Win win) {
  const int ready = making_way(win);
  return ready == MPI_SUCCESS ? PMPI_Win_post(group, assertion, win) : ready;
}

int MPI_Win_get_info(MPI_Win win, MPI_Info* info) {
  const int made = PMPI_Win_get_info(win, info);
  preload::window* const ours = made == MPI_SUCCESS ? preload::find(win) : nullptr;
  if (ours == nullptr) return made;
  PMPI_Info_set(*info, "lockflight_lock", ours->scheme_name().c_str());
  return PMPI_Info_set(*info, "passive_sync_mode", preload::sync_mode_of(ours->scheme_name()));
}

int MPI_Finalize() {
  preload::forget_all();
  preload::print_what_was_kept();
  return PMPI_Finalize();
}

}  // extern "C"

#pragma GCC visibility pop
