// The end of MPI where ranks are on several hosts.
//
// MPI_Finalize of MPICH over UCX asks UCX to disconnect all ranks, makes progress until UCX has
// done so, and then waits for its process manager and makes no progress any more. A rank of another
// host whose disconnection takes an answer of this one waits for ever: over TCP about half of all
// short launches hang. So a rank whose own disconnections are complete goes on making progress for
// a while. Ranks that meet and make progress before MPI_Finalize do not help, since what has to be
// answered begins in it.
#pragma once

namespace lockflight::mpi::detail {

/// While this exists, in MPI_Finalize, MPICH makes progress for half a second more, unless all
/// ranks are on one host. Made before MPI_Finalize is called. Does nothing with other MPIs.
class [[nodiscard]] serving_at_the_end {
 public:
  serving_at_the_end();
  ~serving_at_the_end();
  serving_at_the_end(const serving_at_the_end&) = delete;
  serving_at_the_end& operator=(const serving_at_the_end&) = delete;
};

}  // namespace lockflight::mpi::detail
