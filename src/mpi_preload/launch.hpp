// The processes that were launched together: those of MPI_COMM_WORLD.
#pragma once

#include <mpi.h>

namespace lockflight::mpi_preload {

/// True if there is an MPI_COMM_WORLD: between MPI_Init and MPI_Finalize. A program that uses
/// sessions alone has none.
[[nodiscard]] bool has_launch();

/// True if all processes of a communicator were launched with this one. Others, which were spawned
/// or connected, may run without the drop-in; and a process that is not a member of all windows'
/// launches cannot find out. Each rank finds the same: a process of two launches sees one that is
/// not of its own. There is a launch.
[[nodiscard]] bool is_of_this_launch(MPI_Comm whole);

/// The group of a communicator of this launch, to be freed. Where the communicator is of a session,
/// the group is not, and so the session can end before it. May throw std::bad_alloc.
[[nodiscard]] MPI_Group group_in_launch(MPI_Comm whole);

}  // namespace lockflight::mpi_preload
