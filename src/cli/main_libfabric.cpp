// main() of the build with libfabric, which build/lockflight becomes when it is asked for that
// fabric.
#include "bench/wired/launch.hpp"
#include "cli/launched_main.hpp"
#include "cli/standard_streams.hpp"
#include "lockflight/fabric/libfabric.hpp"

int main(int argc, char** argv) {
  lockflight::cli::fill_standard_streams();
  lockflight::bench::wired_launch<lockflight::libfabric::environment> libfabric;
  return lockflight::cli::run_launched_program(libfabric, argc, argv);
}
