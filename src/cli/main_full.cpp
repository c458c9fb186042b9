#include "cli/program.hpp"
#include "cli/standard_streams.hpp"

int main(int argc, char** argv) {
  lockflight::cli::fill_standard_streams();
  return lockflight::cli::run_program(argc, argv);
}
