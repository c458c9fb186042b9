#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "fabric/mpi/calls.hpp"
#include "fabric/mpi/venue.hpp"

namespace lockflight::mpi {
namespace {

/// Where all ranks are on one machine, Open MPI 4.1 uses its component osc/rdma over shared memory
/// for windows, and an MPI_Compare_and_swap to the own rank then ends in a segmentation fault. The
/// next component in its order, osc/ucx, is correct but holds a lock of the target during every
/// accumulate; with two ranks it takes ten times as long as osc/pt2pt. Open MPI reads the choice
/// when it is initialised.
void choose_component() {
#if defined(OPEN_MPI)
  const auto value = [](const char* name) {
    const char* const found = std::getenv(name);
    return std::string_view(found != nullptr ? found : "");
  };
  const std::string_view all = value("OMPI_COMM_WORLD_SIZE");
  if (all.empty() || all == value("OMPI_COMM_WORLD_LOCAL_SIZE"))
    setenv("OMPI_MCA_osc", "sm,pt2pt", 0);
#endif
}

}  // namespace

environment::environment() {
  int done = 0;
  MPI_Finalized(&done);
  if (done != 0) throw unavailable("MPI has been finalised in this process");
  MPI_Initialized(&done);
  if (done != 0) return;
  choose_component();
  int level = 0;
  // One thread calls MPI; others, such as one that shows progress, may run beside it.
  detail::check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &level), "MPI_Init_thread");
  ours_ = true;
  if (level < MPI_THREAD_FUNNELED)
    throw unavailable("this MPI allows no threads beside the one that calls it");
}

environment::~environment() {
  detail::forget_venues();
  if (ours_) MPI_Finalize();
}

int environment::rank() const {
  int r = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &r);
  return r;
}

int environment::size() const {
  int n = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &n);
  return n;
}

bool environment::all(bool holds) const {
  return detail::holds_on_all(detail::communicator::duplicate(MPI_COMM_WORLD), holds);
}

double environment::first(double mine) const {
  detail::broadcast(detail::communicator::duplicate(MPI_COMM_WORLD), &mine, 1, MPI_DOUBLE);
  return mine;
}

// The launcher ends the other ranks when one exits without MPI_Finalize. So this also works from a
// thread that may not call MPI, and while the main thread is inside a call.
void abandon(const std::string& why) {
  std::fflush(stdout);
  std::fprintf(stderr, "%s\n", why.c_str());
  std::fflush(stderr);
  constexpr int environment_failed = 3;
  _exit(environment_failed);
}

}  // namespace lockflight::mpi
