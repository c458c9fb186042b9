// The UCX launch, as the benchmark and the doctor use it.
#pragma once

#include "bench/launched/launch_over.hpp"
#include "lockflight/fabric/ucx.hpp"

namespace lockflight::bench {

struct over_ucx {
  static constexpr const char* name = "ucx";
  using environment = ucx::environment;
  using host_memory = ucx::host_memory;
  using port = ucx::port;
  static constexpr auto discover = &ucx::discover;
  static constexpr auto run_ports = &ucx::run_ports;
  [[nodiscard]] static launch::diagnosis diagnose(environment& in);
};

using ucx_launch = launch_over<over_ucx>;
extern template class launch_over<over_ucx>;

}  // namespace lockflight::bench
