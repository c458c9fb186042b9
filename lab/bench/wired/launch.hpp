// The launches that are wired up without MPI, on UCX and on libfabric, as the benchmark and the
// doctor use them.
#pragma once

#include "lab/bench/launched/launch_over.hpp"
#include "lockflight/fabric/wired.hpp"

namespace lockflight::bench {

[[nodiscard]] launch::diagnosis diagnosis_of(const wired::findings& found);

template <class Environment>
struct over_wired {
  static constexpr const char* name = Environment::fabric;
  using environment = Environment;
  using host_memory = wired::host_memory;
  using port = wired::port;
  static constexpr auto discover = &wired::discover;
  static constexpr auto run_ports = &wired::run_ports;
  [[nodiscard]] static launch::diagnosis diagnose(environment& in) {
    return diagnosis_of(wired::probe(in));
  }
};

template <class Environment>
using wired_launch = launch_over<over_wired<Environment>>;

}  // namespace lockflight::bench
