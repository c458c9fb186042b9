// The windows that the drop-in synchronises.
#pragma once

#include <mpi.h>

#include <optional>

#include "mpi_preload/window.hpp"

namespace lockflight::mpi_preload {

/// Null for a window that MPI synchronises: it was made while the drop-in was off, or by the
/// fabric.
[[nodiscard]] window* find(MPI_Win win);

/// After MPI has made a window; collective over its group, unless that has processes of another
/// launch: these may run without the drop-in, and such windows stay MPI's. If the locks cannot be
/// made on one of the ranks the window stays MPI's on all of them, with one warning. What we do in
/// here is not taken for the program's own calls.
void adopt(MPI_Win win, MPI_Comm group, MPI_Info info);

/// Before MPI frees it: its locks end. Collective. What is to be given back once MPI has freed it,
/// which it does on no rank before all have come.
[[nodiscard]] std::optional<window_grant> forget(MPI_Win win);
void is_freed(window_grant was);

/// Before MPI_Finalize: the windows that were not freed. Not collective.
void forget_all();

}  // namespace lockflight::mpi_preload
