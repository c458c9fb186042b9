// main() of the builds with MPI: the program, which can also join an MPI launch.
#include <cstdio>
#include <exception>
#include <string_view>

#include "bench/mpi/launch.hpp"
#include "cli/program.hpp"

namespace {

/// Whether the command line names the fabric. Parsing reports other errors in it.
bool asks_for(std::string_view fabric, int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word(argv[i]);
    if (word == "--fabric" && i + 1 < argc && argv[i + 1] == fabric) return true;
    if (word.starts_with("--fabric=") && word.substr(9) == fabric) return true;
  }
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  lockflight::bench::mpi_launch mpi;
  lockflight::bench::build_in(mpi);
  // Before an error can be reported, so that only rank 0 reports it. A program that asks for no MPI
  // needs no launcher.
  const bool doctor = argc > 1 && std::string_view(argv[1]) == "doctor";
  if (doctor || asks_for(mpi.fabric(), argc, argv)) {
    try {
      mpi.start();
    } catch (const std::exception& e) {
      std::fprintf(stderr, "lockflight: %s\n", e.what());
      return 3;
    }
    // Other ranks can still report on standard error why they failed.
    if (mpi.rank() != 0 && std::freopen("/dev/null", "w", stdout) == nullptr) return 3;
  }
  return lockflight::cli::run_program(argc, argv);
}
