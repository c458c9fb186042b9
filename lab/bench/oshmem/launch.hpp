// The OpenSHMEM launch, as the benchmark and the doctor use it.
#pragma once

#include "lab/bench/launched/launch_over.hpp"
#include "lockflight/fabric/oshmem.hpp"

namespace lockflight::bench {

struct over_oshmem {
  static constexpr const char* name = "oshmem";
  using environment = oshmem::environment;
  using host_memory = oshmem::host_memory;
  using port = oshmem::port;
  static constexpr auto discover = &oshmem::discover;
  static constexpr auto run_ports = &oshmem::run_ports;
  [[nodiscard]] static launch::diagnosis diagnose(environment& in);
};

using oshmem_launch = launch_over<over_oshmem>;
extern template class launch_over<over_oshmem>;

}  // namespace lockflight::bench
