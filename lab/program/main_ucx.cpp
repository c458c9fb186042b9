// main() of the lab with UCX.
#include <unistd.h>

#include <cstdlib>

#include "lab/bench/wired/launch.hpp"
#include "lab/program/launched_main.hpp"
#include "lockflight/fabric/ucx.hpp"
#include "tool/standard_streams.hpp"

namespace {

/// Silences UCX, which prints on standard output, where a table or JSON goes, that a rank is gone;
/// lockflight reports that itself. UCX reads its log level when it is loaded, before main().
void silence_ucx(char** argv) {
  if (std::getenv("UCX_LOG_LEVEL") != nullptr) return;
  setenv("UCX_LOG_LEVEL", "fatal", 1);
  execv("/proc/self/exe", argv);
}

}  // namespace

int main(int argc, char** argv) {
  lockflight::tool::fill_standard_streams();
  silence_ucx(argv);
  lockflight::bench::wired_launch<lockflight::ucx::environment> ucx;
  return lockflight::lab::run_launched_lab(ucx, argc, argv);
}
