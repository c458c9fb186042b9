// The interposed calls of MPI that make and free windows, and that synchronise them.
#include "fabric/mpi/ending.hpp"
#include "mpi_preload/interpose.hpp"
#include "mpi_preload/launch.hpp"
#include "mpi_preload/probes.hpp"
#include "mpi_preload/settings.hpp"
#include "mpi_preload/windows.hpp"

namespace {

namespace preload = lockflight::mpi_preload;
using preload::pmpi;
using preload::with_handler;

/// Reports an error to the window's error handler.
int raised(MPI_Win win, const preload::answer& found) {
  return preload::raise(with_handler::window(win), found);
}

/// A lock call of that kind, between its probes.
template <class Lock>
int locked(MPI_Win win, const preload::window& ours, int target, const char* kind, Lock lock) {
  preload::probes::acquire(&ours, target, kind);
  const preload::answer found = lock();
  if (found.code == MPI_SUCCESS) preload::probes::acquired(&ours, target, kind);
  return raised(win, found);
}

int unlocked(MPI_Win win, const preload::window& ours, int target, preload::answer found) {
  if (found.code == MPI_SUCCESS) preload::probes::released(&ours, target);
  return raised(win, found);
}

/// Before MPI's own call that begins an epoch with an active target, or that is a mistake of a
/// program without a lock: MPI finds the window as it would without the drop-in.
int made_way(MPI_Win win) {
  preload::window* const ours = preload::find(win);
  return ours != nullptr ? raised(win, ours->end_unused_epoch()) : MPI_SUCCESS;
}

/// This process's last window, if it is this one and a lock of it is held; else null.
[[gnu::always_inline]] inline preload::window* found_with_lock(MPI_Win win) {
  preload::window* const ours = preload::found_alone(win);
  return ours != nullptr && ours->holds_some() ? ours : nullptr;
}

/// Makes a window by the MPI's own call, and its locks.
template <class Call>
int adopted(MPI_Comm group, MPI_Info info, const MPI_Win* win, Call call) {
  const with_handler on = with_handler::communicator(group);
  const preload::answer made = preload::result_of(on, call);
  if (made.code == MPI_SUCCESS) preload::adopt(*win, group, info);
  return preload::raise(on, made);
}

}  // namespace

// ---- windows ----

LOCKFLIGHT_INTERPOSE(Win_create,
                     (void* base, MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm,
                      MPI_Win* win),
                     (base, size, unit, info, comm, win)) {
  return adopted(comm, info, win,
                 [&] { return pmpi().Win_create(base, size, unit, info, comm, win); });
}

LOCKFLIGHT_INTERPOSE(Win_allocate,
                     (MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void* base,
                      MPI_Win* win),
                     (size, unit, info, comm, base, win)) {
  return adopted(comm, info, win,
                 [&] { return pmpi().Win_allocate(size, unit, info, comm, base, win); });
}

LOCKFLIGHT_INTERPOSE(Win_allocate_shared,
                     (MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void* base,
                      MPI_Win* win),
                     (size, unit, info, comm, base, win)) {
  return adopted(comm, info, win,
                 [&] { return pmpi().Win_allocate_shared(size, unit, info, comm, base, win); });
}

#if MPI_VERSION >= 4
LOCKFLIGHT_INTERPOSE(Win_create_c,
                     (void* base, MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm,
                      MPI_Win* win),
                     (base, size, unit, info, comm, win)) {
  return adopted(comm, info, win,
                 [&] { return pmpi().Win_create_c(base, size, unit, info, comm, win); });
}

LOCKFLIGHT_INTERPOSE(Win_allocate_c,
                     (MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm, void* base,
                      MPI_Win* win),
                     (size, unit, info, comm, base, win)) {
  return adopted(comm, info, win,
                 [&] { return pmpi().Win_allocate_c(size, unit, info, comm, base, win); });
}

LOCKFLIGHT_INTERPOSE(Win_allocate_shared_c,
                     (MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm, void* base,
                      MPI_Win* win),
                     (size, unit, info, comm, base, win)) {
  return adopted(comm, info, win,
                 [&] { return pmpi().Win_allocate_shared_c(size, unit, info, comm, base, win); });
}
#endif

LOCKFLIGHT_INTERPOSE(Win_create_dynamic, (MPI_Info info, MPI_Comm comm, MPI_Win* win),
                     (info, comm, win)) {
  return adopted(comm, info, win, [&] { return pmpi().Win_create_dynamic(info, comm, win); });
}

LOCKFLIGHT_INTERPOSE(Win_free, (MPI_Win * win), (win)) { return preload::freed(win); }

LOCKFLIGHT_INTERPOSE(Win_get_info, (MPI_Win win, MPI_Info* info), (win, info)) {
  preload::window* const ours = preload::find(win);
  if (ours == nullptr && !preload::is_left_to_mpi(win)) return pmpi().Win_get_info(win, info);
  const preload::answer made =
      preload::result_of(with_handler::window(win), [&] { return pmpi().Win_get_info(win, info); });
  if (made.code != MPI_SUCCESS) return raised(win, made);
  const preload::scheme_name locks =
      ours != nullptr ? ours->scheme()
                      : preload::scheme_name{preload::default_queue, preload::way_of_mpi};
  PMPI_Info_set(*info, "lockflight_lock", locks.lock.c_str());
  PMPI_Info_set(*info, "lockflight_lock_all", locks.lock_all.c_str());
  return PMPI_Info_set(*info, "passive_sync_mode", preload::sync_mode_of(locks.lock));
}

LOCKFLIGHT_INTERPOSE(Finalize, (void), ()) {
  preload::forget_all();
  preload::print_what_was_kept();
  if (preload::environment().off || !preload::has_launch()) return pmpi().Finalize();
  const lockflight::mpi::detail::serving_at_the_end meanwhile;
  return pmpi().Finalize();
}

// ---- passive targets ----

LOCKFLIGHT_INTERPOSE_QUICKLY(Win_lock, (int type, int rank, int assertion, MPI_Win win),
                             (type, rank, assertion, win),
                             if (preload::window* const ours = preload::found_alone(win);
                                 ours != nullptr && ours->lock_quickly(type, rank, assertion))
                                 [[likely]] return MPI_SUCCESS) {
  preload::window* const ours = preload::find(win);
  if (ours == nullptr) return pmpi().Win_lock(type, rank, assertion, win);
  return locked(win, *ours, rank, type == MPI_LOCK_SHARED ? "shared" : "exclusive",
                [&] { return ours->lock(type, rank, assertion); });
}

LOCKFLIGHT_INTERPOSE_QUICKLY(Win_unlock, (int rank, MPI_Win win), (rank, win),
                             int code = MPI_SUCCESS;
                             if (preload::window* const ours = preload::found_alone(win);
                                 ours != nullptr && ours->unlock_quickly(rank, code))
                                 [[likely]] return code) {
  preload::window* const ours = preload::find(win);
  if (ours == nullptr) return pmpi().Win_unlock(rank, win);
  return unlocked(win, *ours, rank, ours->unlock(rank));
}

LOCKFLIGHT_INTERPOSE(Win_lock_all, (int assertion, MPI_Win win), (assertion, win)) {
  preload::window* const ours = preload::find(win);
  if (ours == nullptr) return pmpi().Win_lock_all(assertion, win);
  return locked(win, *ours, preload::probes::all_targets, "all",
                [&] { return ours->lock_all(assertion); });
}

LOCKFLIGHT_INTERPOSE(Win_unlock_all, (MPI_Win win), (win)) {
  preload::window* const ours = preload::find(win);
  if (ours == nullptr) return pmpi().Win_unlock_all(win);
  return unlocked(win, *ours, preload::probes::all_targets, ours->unlock_all());
}

// ---- completion ----

// While all targets are locked, the record that an operation has begun is one of all targets, which
// the flush of one target does not clear: the call is MPI's, as its caller's last step.
LOCKFLIGHT_INTERPOSE_PASSED_ON(
    Win_flush, (int target, MPI_Win win), (target, win),
    if (preload::window* const ours = preload::found_alone(win); ours != nullptr) [[likely]] {
      if (ours->holds_all()) return preload::mpi_of_found_alone().Win_flush(target, win);
      return ours->flush(target);
    }) {
  preload::window* const ours = preload::find(win);
  return ours != nullptr ? ours->flush(target) : pmpi().Win_flush(target, win);
}

// The record is cleared before the flush, and so the call is the caller's last step here too.
LOCKFLIGHT_INTERPOSE_PASSED_ON(
    Win_flush_all, (MPI_Win win), (win),
    if (preload::window* const ours = found_with_lock(win); ours != nullptr) [[likely]] {
      ours->note_flush_of_all();
      return preload::mpi_of_found_alone().Win_flush_all(win);
    }) {
  const int ready = made_way(win);
  if (ready != MPI_SUCCESS) return ready;
  if (preload::window* const ours = preload::find(win); ours != nullptr) ours->note_flush_of_all();
  return pmpi().Win_flush_all(win);
}

LOCKFLIGHT_INTERPOSE_PASSED_ON(Win_flush_local, (int target, MPI_Win win), (target, win),
                               if (found_with_lock(win) != nullptr)
                                   [[likely]] return preload::mpi_of_found_alone()
                                       .Win_flush_local(target, win)) {
  const int ready = made_way(win);
  return ready == MPI_SUCCESS ? pmpi().Win_flush_local(target, win) : ready;
}

LOCKFLIGHT_INTERPOSE_PASSED_ON(Win_flush_local_all, (MPI_Win win), (win),
                               if (found_with_lock(win) != nullptr)
                                   [[likely]] return preload::mpi_of_found_alone()
                                       .Win_flush_local_all(win)) {
  const int ready = made_way(win);
  return ready == MPI_SUCCESS ? pmpi().Win_flush_local_all(win) : ready;
}

LOCKFLIGHT_INTERPOSE_PASSED_ON(Win_sync, (MPI_Win win), (win),
                               if (found_with_lock(win) != nullptr)
                                   [[likely]] return preload::mpi_of_found_alone()
                                       .Win_sync(win)) {
  const int ready = made_way(win);
  return ready == MPI_SUCCESS ? pmpi().Win_sync(win) : ready;
}

// ---- active targets ----

LOCKFLIGHT_INTERPOSE_PASSED_ON(Win_fence, (int assertion, MPI_Win win), (assertion, win), ) {
  const int ready = made_way(win);
  return ready == MPI_SUCCESS ? pmpi().Win_fence(assertion, win) : ready;
}

LOCKFLIGHT_INTERPOSE_PASSED_ON(Win_start, (MPI_Group group, int assertion, MPI_Win win),
                               (group, assertion, win), ) {
  const int ready = made_way(win);
  return ready == MPI_SUCCESS ? pmpi().Win_start(group, assertion, win) : ready;
}

LOCKFLIGHT_INTERPOSE_PASSED_ON(Win_post, (MPI_Group group, int assertion, MPI_Win win),
                               (group, assertion, win), ) {
  const int ready = made_way(win);
  return ready == MPI_SUCCESS ? pmpi().Win_post(group, assertion, win) : ready;
}
