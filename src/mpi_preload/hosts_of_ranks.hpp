// The hosts of a communicator's ranks, by the MPI. The hosts are found out once for a set of
// processes: over a network each call that asks for them takes as long as a few locks.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <string>

#include "lockflight/rma/topology.hpp"

namespace lockflight::mpi_preload {

struct hosts_of_ranks {
  /// The ranks by host, each host divided as LOCKFLIGHT_MPI_NODES says.
  rma::topology machine;
  /// True if some of the ranks cannot share memory, whatever the nodes of `machine` are.
  bool several_hosts = false;
};

/// The facts about a rank that it knows beforehand. The ranks combine them in the one collective
/// call that is needed even for processes whose hosts are known.
struct readiness {
  std::string why_not;       ///< a fault of this rank alone; empty if there is none
  bool has_numbers = false;  ///< the MPI has numbers for communicators here
};
struct found_hosts {
  hosts_of_ranks hosts;
  bool have_numbers = false;  ///< all ranks have numbers for communicators
};

/// Collective. Throws mpi::unavailable on all ranks alike if one of them has a fault.
[[nodiscard]] found_hosts find_hosts(MPI_Comm whole, readiness mine);

}  // namespace lockflight::mpi_preload
