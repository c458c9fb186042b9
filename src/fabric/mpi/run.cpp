// A run: its ranks, the body, and the end.
#include <sched.h>

#include <cstdio>
#include <ctime>
#include <string>

#include "fabric/mpi/link.hpp"
#include "fabric/mpi/venue.hpp"
#include "fabric/mpi/watch.hpp"

namespace lockflight::mpi {
namespace {

using detail::check;
using detail::communicator;

/// Throws, on all ranks alike, unless there are enough of them.
void require_ranks(const config& what) {
  detail::require_mpi();
  int there = 0;
  PMPI_Comm_size(what.communicator ? detail::communicator_of(*what.communicator) : MPI_COMM_WORLD,
                 &there);
  const int ranks = what.machine.ranks();
  if (ranks > there)
    throw std::invalid_argument(std::to_string(ranks) + " ranks (accepted: 1 to " +
                                std::to_string(there) + ", the ranks of this launch)");
}

/// Ranks beyond the machine: no rank waits for them, and they take no core from the ranks that run.
void sleep_until_all_have_come(const communicator& whole) {
  MPI_Request request = MPI_REQUEST_NULL;
  check(PMPI_Ibarrier(whole.get(), &request), "MPI_Ibarrier");
  const timespec nap{0, 500'000};
  for (int done = 0;;) {
    check(PMPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (done != 0) return;
    nanosleep(&nap, nullptr);
  }
}

/// Ends the launch: other ranks could wait for this one for ever. This rank's resources are not
/// released before, since that would wait for the others.
void fail(rma::rank_t rank, const char* what) {
  std::fflush(stdout);
  std::fprintf(stderr, "lockflight: rank %d failed: %s\n", rank, what);
  std::fflush(stderr);
  // A launcher may drop what it has not forwarded yet when the launch ends.
  const timespec forwarded{0, 300'000'000};
  nanosleep(&forwarded, nullptr);
  constexpr int environment_failed = 3;
  PMPI_Abort(MPI_COMM_WORLD, environment_failed);
}

}  // namespace

void run_ports(const config& what, const std::function<void(port&)>& body) {
  require_ranks(what);
  static_cast<void>(wait_policy::parse(what.waiting, 1, 1));  // or throws
  std::optional<detail::venue> fresh;
  detail::venue& at = detail::venue_of(what, fresh);
  if (!what.communicator) detail::watch_hosts(at.whole);
  ++at.runs;
  if (!at.members) return sleep_until_all_have_come(at.whole);
  const rma::rank_t rank = at.members.rank();
  const wait_policy policy = detail::policy_of(what, at);
  at.cells->clear();
  detail::meet(at.members);
  try {
    detail::link link(at.messages, at.cells->exposed(),
                      /*patient=*/policy.spins == 0 && detail::spins_in_flush, at.runs);
    port p(rank, what.machine, at.cells->base(), {.only = at.only_cpu}, policy, link);
    body(p);
    p.flush();  // operations that the body left
    // Progress goes on until all ranks have returned, since they may still use our cells (C35).
    detail::meet(at.whole);
  } catch (const std::exception& e) {
    fail(rank, e.what());
  } catch (...) {
    fail(rank, "an exception of unknown type");
  }
}

}  // namespace lockflight::mpi
