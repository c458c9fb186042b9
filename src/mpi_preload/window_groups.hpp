// The groups of this process, and the functions by which a window gets a place in one.
#pragma once

#include <mpi.h>

#include <memory>

#include "mpi_preload/settings.hpp"
#include "mpi_preload/window_group.hpp"

namespace lockflight::mpi_preload {

class window;

/// The locks of a window, and their place: the same on all ranks.
struct window_grant {
  std::shared_ptr<window_group> group;
  window_place at;
  scheme_message scheme;  ///< bytes: a name takes memory, which one rank alone may lack
};

/// The first rank's offer for a window, made before it knows whether all ranks want the drop-in: a
/// place in a group that is there, so that a window needs no other collective call to find it.
struct window_offer {
  window_group::name called{};
  window_place at{};
  std::int32_t is_one = 0;  ///< 0: there is no offer
  scheme_message scheme{};
};
// An offer is sent as numbers of 64 bits.
static_assert(sizeof(window_offer) % sizeof(std::uint64_t) == 0);

/// The group of `whole`, if its ranks meet in memory; else null.
[[nodiscard]] std::shared_ptr<window_group> group_that_meets(MPI_Comm whole);

/// The locks of a window of this group that has ended, for the next window of the group. All ranks
/// find those of the same window, unless one of them has freed that with a lock held. The window is
/// counted again, until it is over. Null if there are none. The group meets in memory.
[[nodiscard]] std::unique_ptr<window> take_spare(const window_group& of);

/// Makes the offer, on the first rank of `whole`. None if there is no such group on this host, if
/// it has no room, or if a step fails.
[[nodiscard]] window_offer offer_for(MPI_Comm whole, MPI_Info info);
/// Called on the first rank if the offer is not wanted on all ranks.
void withdraw(const window_offer& offer);
/// Called on all ranks, once all want the offer. This rank's words are not zero yet
/// (window_group::prepare).
[[nodiscard]] window_grant accept(const window_offer& offer, MPI_Comm whole, MPI_Info info);

/// A place for one window more, all zero, in the group of `whole`, which is made if there is none.
/// All ranks must have met before one uses it. Collective over `whole`. Throws mpi::unavailable or
/// std::exception, on all ranks alike.
[[nodiscard]] window_grant join(MPI_Comm whole, MPI_Info info, const common_settings& common);

/// Called when the window at this place has ended on all ranks. Collective over the group, unless
/// it is on one host. A group without windows is stored for the next window, unless there are many.
void leave(window_grant was);
/// As the other leave(), for a window's locks, which are stored as a spare if they can be used
/// again.
void leave(std::unique_ptr<window> was);

/// Ends the groups without windows. Collective over all processes of groups that end together.
void end_idle_groups();

}  // namespace lockflight::mpi_preload
