// The windows that the drop-in synchronises.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "mpi_preload/pmpi.hpp"
#include "mpi_preload/window.hpp"

namespace lockflight::mpi_preload {

namespace detail {

/// The number of changes of the list of windows, and a thread's last result at that number.
extern constinit std::atomic<std::uint64_t> changes;
struct found {
  MPI_Win win;
  window* is;
  std::uint64_t as_of;
};
// Reached without a call: this library is loaded with the program (preloaded or linked).
[[gnu::tls_model("initial-exec")]] extern constinit thread_local found last;

[[nodiscard]] window* look_for(MPI_Win win);

/// The same where one thread at a time calls MPI and no tool is loaded behind us. Then all that a
/// call has to find out is whether it is for this window. Null again with each change.
struct found_alone {
  MPI_Win win;
  window* is;
};
extern constinit found_alone last_alone;

/// True if this thread's last result is of this window, and no window was made or freed since.
[[nodiscard]] inline bool is_last(MPI_Win win) {
  return last.as_of == changes.load(std::memory_order_acquire) && last.win == win;
}

}  // namespace detail

/// This process's last result, if it is of this window and there is nothing else to find out; else
/// null.
[[nodiscard, gnu::always_inline]] inline window* found_alone(MPI_Win win) {
  return win == detail::last_alone.win ? detail::last_alone.is : nullptr;
}
/// The MPI's own calls. To be called only if found_alone() is not null.
[[nodiscard, gnu::always_inline]] inline const mpi_calls& mpi_of_found_alone() {
  return detail::all_calls.own;
}

/// The drop-in's window; null for a window that MPI synchronises: it was made while the drop-in was
/// off, or by the fabric. Every put calls this, so each thread stores its last result.
[[nodiscard]] inline window* find(MPI_Win win) {
  if (window* const alone = found_alone(win); alone != nullptr) return alone;
  return detail::is_last(win) ? detail::last.is : detail::look_for(win);
}

/// Leaves the calls to the MPI if no window needs a check. `asks` has counted its checks
/// (window::checks_are_over). One thread at a time calls the MPI.
void stop_checks(window& asks);

/// Called after MPI has made a window; collective over its group, unless that has processes of
/// another launch: these may run without the drop-in, and such windows stay MPI's. If the locks
/// cannot be made on one of the ranks the window stays MPI's on all of them, with one warning.
/// Calls of MPI in this function do not count as the program's own.
void adopt(MPI_Win win, MPI_Comm group, MPI_Info info);

/// True if this window has the MPI's locks, because they serve it best, and nothing is to be done
/// before them.
[[nodiscard]] bool is_left_to_mpi(MPI_Win win);

/// Frees a window by the MPI's own call, and then its locks: the MPI frees it on no rank before all
/// have come. A window that the MPI refuses to free stays as it is. Errors are raised. Collective.
int freed(MPI_Win* win);

/// Called before MPI_Finalize: drops the windows that were not freed. Not collective.
void forget_all();

}  // namespace lockflight::mpi_preload
