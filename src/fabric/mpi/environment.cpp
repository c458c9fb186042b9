#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "fabric/mpi/calls.hpp"
#include "fabric/mpi/ending.hpp"
#include "fabric/mpi/trial.hpp"
#include "fabric/mpi/venue.hpp"

namespace lockflight::mpi {
namespace {

std::string_view value(const char* name) {
  const char* const found = std::getenv(name);
  return found != nullptr ? found : "";
}

/// Open MPI 4.1 chooses a component for windows that fails in two places. Where all ranks are on
/// one machine it uses osc/rdma over shared memory, and an MPI_Compare_and_swap to the own rank
/// ends in a segmentation fault; the next one in its order, osc/ucx, is correct but holds a lock of
/// the target during every accumulate, and with two ranks takes ten times as long as osc/pt2pt.
/// Over TCP none of these makes a window at all, and osc/pt2pt does. Open MPI reads the choice when
/// it is initialised.
void choose_component() {
  if (!detail::is_open_mpi_4()) return;
  // Open MPI chooses the component for a network whose cards have atomics of their own.
  std::error_code none;
  const std::filesystem::directory_iterator cards("/sys/class/infiniband", none);
  const bool has_cards = !none && cards != std::filesystem::directory_iterator();
  const std::string_view all = value("OMPI_COMM_WORLD_SIZE");
  const bool one_machine = all.empty() || all == value("OMPI_COMM_WORLD_LOCAL_SIZE");
  if (one_machine || !has_cards) setenv("OMPI_MCA_osc", detail::osc_that_works, 0);
}

/// osc/pt2pt makes no window in a program in which several threads call MPI.
bool allows_threads() {
  return !detail::is_open_mpi_4() || value("OMPI_MCA_osc").find("pt2pt") == std::string_view::npos;
}

/// The level to ask of MPI_Init_thread. One thread calls MPI, and others, such as one that shows
/// progress, may run beside it. The thread that LOCKFLIGHT_PROGRESS asks for calls MPI too. A wrong
/// value of the variable is reported by a run, on one rank.
int wanted_threads() {
  const std::string_view help = value("LOCKFLIGHT_PROGRESS");
  return (help == "thread" || help == "auto") && allows_threads() ? MPI_THREAD_MULTIPLE
                                                                  : MPI_THREAD_FUNNELED;
}

}  // namespace

environment::environment() {
  int done = 0;
  PMPI_Finalized(&done);
  if (done != 0) throw unavailable("MPI has been finalised in this process");
  PMPI_Initialized(&done);
  if (done == 0) {
    choose_component();
    const int wanted = wanted_threads();
    int level = 0;
    detail::check(MPI_Init_thread(nullptr, nullptr, wanted, &level), "MPI_Init_thread");
    ours_ = true;
    if (level < MPI_THREAD_FUNNELED)
      throw unavailable("this MPI allows no threads beside the one that calls it");
  }
  const auto all = detail::communicator::duplicate(MPI_COMM_WORLD);
  first_of_host_ = detail::first_of_machine(all);
  hosts_ = detail::names_of_hosts(all);
}

environment::~environment() {
  detail::forget_venues();
  if (!ours_) return;
  const detail::serving_at_the_end meanwhile;
  MPI_Finalize();
}

int environment::rank() const {
  int r = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &r);
  return r;
}

int environment::size() const {
  int n = 0;
  PMPI_Comm_size(MPI_COMM_WORLD, &n);
  return n;
}

std::vector<std::string> environment::gather(const std::string& mine) {
  return detail::gather(detail::communicator::duplicate(MPI_COMM_WORLD), mine);
}

}  // namespace lockflight::mpi
