// A venue: the communicators and the memory of a run, which later runs use again.
#pragma once

#include <optional>

#include "fabric/mpi/progress.hpp"
#include "fabric/mpi/segment.hpp"

namespace lockflight::mpi::detail {

/// Collective over `whole`, as is its destruction.
struct venue {
  communicator whole;     // all ranks that called the run
  communicator members;   // the ranks that take part
  communicator messages;  // the same, for their messages alone
  communicator machine;   // the members on this rank's machine
  communicator node;      // the members on this rank's node
  bool only_cpu = false;
  int processors = 1;  // of this machine
  std::optional<segment> cells;
  std::shared_ptr<progress_thread> help;  // null where none is wanted
  rma::word runs = 0;                     // runs so far

  /// Throws on all ranks alike: std::invalid_argument on nodes that span machines, `unavailable`.
  venue(communicator all, const config& what);
};

/// The venue for this run. Venues of MPI_COMM_WORLD, which all ranks use in the same order, are
/// cached, since making windows takes many rounds of messages. `fresh` holds one that cannot be
/// cached.
[[nodiscard]] venue& venue_of(const config& what, std::optional<venue>& fresh);

/// The wait policy of the ranks of this machine.
[[nodiscard]] wait_policy policy_of(const config& what, const venue& at);

/// Releases all cached venues. Collective; before MPI is finalised.
void forget_venues();

}  // namespace lockflight::mpi::detail
