// Notices that a host of the launch is gone, which no MPI does by itself.
#pragma once

#include "fabric/mpi/calls.hpp"

namespace lockflight::mpi::detail {

/// Begins to watch, once for a process, if `all` are on several hosts; until MPI_Finalize. Each
/// rank has a TCP connection to rank 0 of its own, on which nothing is sent: the kernels ask each
/// other whether they are there (keepalive), and a thread of each rank sleeps until an answer is
/// missing. Then it names the rank and its host and ends the launch with exit code 3.
///
/// Reason: an operation of MPI that does not end may have a target that computes, so no time limit
/// on operations distinguishes a lost host from a slow one. A kernel answers while its processes
/// compute, or are stopped. The watch costs a file descriptor for each rank at rank 0, and no time.
///
/// Collective over `all`, the ranks of MPI_COMM_WORLD.
void watch_hosts(const communicator& all);

}  // namespace lockflight::mpi::detail
