// The MPI launch, as the benchmark and the doctor use it. Includes no mpi.h: compiled once, linked
// with the fabric of each MPI.
#pragma once

#include "lab/bench/launched/launch_over.hpp"
#include "lockflight/fabric/mpi.hpp"

namespace lockflight::bench {

struct over_mpi {
  static constexpr const char* name = "mpi";
  using environment = mpi::environment;
  using host_memory = mpi::host_memory;
  using port = mpi::port;
  [[nodiscard]] static fabric::levels discover(environment&, int ranks) {
    return mpi::discover(ranks);
  }
  static void run_ports(environment&, const fabric::run_config& what,
                        const std::function<void(port&)>& body) {
    mpi::run_ports(
        {.machine = what.machine, .waiting = what.waiting, .words_per_rank = what.words_per_rank},
        body);
  }
  [[nodiscard]] static launch::diagnosis diagnose(environment&);
};

using mpi_launch = launch_over<over_mpi>;
extern template class launch_over<over_mpi>;

}  // namespace lockflight::bench
