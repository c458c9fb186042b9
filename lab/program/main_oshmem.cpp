// main() of the lab with OpenSHMEM.
#include "lab/bench/oshmem/launch.hpp"
#include "lab/program/launched_main.hpp"
#include "tool/standard_streams.hpp"

int main(int argc, char** argv) {
  lockflight::tool::fill_standard_streams();
  lockflight::bench::oshmem_launch oshmem;
  return lockflight::lab::run_launched_lab(oshmem, argc, argv);
}
