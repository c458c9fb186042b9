// main() of the build with OpenSHMEM, which build/lockflight becomes when it is asked for that
// fabric.
#include "bench/oshmem/launch.hpp"
#include "cli/launched_main.hpp"
#include "cli/standard_streams.hpp"

int main(int argc, char** argv) {
  lockflight::cli::fill_standard_streams();
  lockflight::bench::oshmem_launch oshmem;
  return lockflight::cli::run_launched_program(oshmem, argc, argv);
}
