// Where a run takes place: communicators and memory, kept from one run to the next.
#pragma once

#include <optional>

#include "fabric/mpi/segment.hpp"

namespace lockflight::mpi::detail {

/// Collective over `whole`, as is its destruction.
struct venue {
  communicator whole;     // all that called the run
  communicator members;   // those that take part
  communicator messages;  // the same, for their messages alone
  communicator machine;   // of the members, those on this rank's machine
  communicator node;      // of those, the ones of this rank's node
  bool only_cpu = false;
  int processors = 1;  // of this machine
  std::optional<segment> cells;
  rma::word runs = 0;  // so many so far

  /// Throws on all ranks alike: std::invalid_argument on nodes that span machines, `unavailable`.
  venue(communicator all, const config& what);
};

/// The venue for this run. Those of MPI_COMM_WORLD, which all ranks use in the same order, are
/// kept: making windows takes many rounds of messages. `fresh` takes one that cannot be kept.
[[nodiscard]] venue& venue_of(const config& what, std::optional<venue>& fresh);

/// How the ranks of this machine wait.
[[nodiscard]] wait_policy policy_of(const config& what, const venue& at);

/// Gives back all that is kept. Collective; before MPI is finalised.
void forget_venues();

}  // namespace lockflight::mpi::detail
