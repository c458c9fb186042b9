// The groups of this process, and the functions by which a window gets a place in one.
//
// docs/windows.svg has the states of a group and of a window's locks. The functions whose comments
// begin with an arrow, here and in group_table.hpp, lead from one state to another.
#pragma once

#include <mpi.h>

#include <memory>

#include "mpi_preload/window_grant.hpp"

namespace lockflight::mpi_preload {

/// The group of `whole`, if its ranks meet in memory; else null.
[[nodiscard]] std::shared_ptr<window_group> group_that_meets(MPI_Comm whole);

/// spare -> used. The locks of a window of this group that has ended, for the next window of the
/// group. All ranks find those of the same window, unless one of them has freed that with a lock
/// held. The window is counted again, until it is over. Null if there are none. The group meets in
/// memory.
[[nodiscard]] owned_window take_spare(const window_group& of);
/// used -> spare. Keeps the locks of a window that has ended, and can be used again, for the next
/// window of their group. False if there are enough of them.
[[nodiscard]] bool keep_spare(const window_group& of, owned_window& was);

/// none -> offered. Makes the offer, on the first rank of `whole`. None if there is no such group
/// on this host, if it has no room, or if a step fails.
[[nodiscard]] window_offer offer_for(MPI_Comm whole, MPI_Info info);
/// offered -> none. Called on the first rank if the offer is not wanted on all ranks.
void withdraw(const window_offer& offer);
/// offered -> used. Called on all ranks, once all want the offer. This rank's words are not zero
/// yet (window_group::prepare).
[[nodiscard]] window_grant accept(const window_offer& offer, MPI_Comm whole, MPI_Info info);

/// none -> used. A place for one window more, all zero, in the group of `whole`, which is made if
/// there is none. All ranks must have met before one uses it. Collective over `whole`. Throws
/// mpi::unavailable or std::exception, on all ranks alike.
[[nodiscard]] window_grant join(MPI_Comm whole, MPI_Info info, const common_settings& common);

/// used -> none. Called when the window at this place has ended on all ranks. Collective over the
/// group, unless it is on one host. A group without windows is stored for the next window, unless
/// there are many.
void leave(window_grant was);

/// idle -> absent. Ends the groups without windows. Collective over all processes of groups that
/// end together.
void end_idle_groups();

}  // namespace lockflight::mpi_preload
