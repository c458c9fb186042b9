// main() of the builds with MPI.
#include "bench/mpi/launch.hpp"
#include "cli/launched_main.hpp"

int main(int argc, char** argv) {
  lockflight::bench::mpi_launch mpi;
  return lockflight::cli::run_launched_program(mpi, argc, argv);
}
