// main() of the labs with an MPI.
#include "lab/bench/mpi/launch.hpp"
#include "lab/program/launched_main.hpp"
#include "tool/standard_streams.hpp"

int main(int argc, char** argv) {
  lockflight::tool::fill_standard_streams();
  lockflight::bench::mpi_launch mpi;
  return lockflight::lab::run_launched_lab(mpi, argc, argv);
}
