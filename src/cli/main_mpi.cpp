// main() of the builds with MPI.
#include "bench/mpi/launch.hpp"
#include "cli/launched_main.hpp"
#include "cli/standard_streams.hpp"

int main(int argc, char** argv) {
  lockflight::cli::fill_standard_streams();
  lockflight::bench::mpi_launch mpi;
  return lockflight::cli::run_launched_program(mpi, argc, argv);
}
