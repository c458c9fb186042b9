// main() of the labs on wired networks.
#pragma once

#include <unistd.h>

#include <cstdlib>

#include "lab/bench/wired/launch.hpp"
#include "lab/program/launched_main.hpp"
#include "tool/standard_streams.hpp"

namespace lockflight::lab {

/// Silences UCX, which prints on standard output, where a table or JSON goes, that a rank is gone;
/// lockflight reports that itself. UCX reads its log level when it is loaded, before main().
/// libfabric may load UCX, too.
inline void silence_ucx(char** argv) {
  if (std::getenv("UCX_LOG_LEVEL") != nullptr) return;
  setenv("UCX_LOG_LEVEL", "fatal", 1);
  execv("/proc/self/exe", argv);
}

template <class Environment>
int run_wired_lab(int argc, char** argv) {
  tool::fill_standard_streams();
  silence_ucx(argv);
  bench::wired_launch<Environment> launch;
  return run_launched_lab(launch, argc, argv);
}

}  // namespace lockflight::lab
