// main() of the build with UCX, which build/lockflight becomes when it is asked for that fabric.
#include "bench/ucx/launch.hpp"
#include "cli/launched_main.hpp"

int main(int argc, char** argv) {
  lockflight::bench::ucx_launch ucx;
  return lockflight::cli::run_launched_program(ucx, argc, argv);
}
