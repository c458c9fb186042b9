#include <unistd.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "cli/asks_for.hpp"
#include "cli/program.hpp"

namespace {

/// UCX and OpenSHMEM are in programs of their own, so that this one starts without them:
/// ucx/lockflight beside this one in a build, lockflight.ucx where it is installed. Returns where
/// neither is there.
void become_the_one_with(const std::string& fabric, char** argv) {
  std::error_code none;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", none);
  if (none) return;
  execv((self.parent_path() / fabric / self.filename()).c_str(), argv);
  execv((self.string() + '.' + fabric).c_str(), argv);
}

}  // namespace

int main(int argc, char** argv) {
  for (const char* fabric : {"ucx", "oshmem"})
    if (lockflight::cli::asks_for(fabric, argc, argv)) become_the_one_with(fabric, argv);
  return lockflight::cli::run_program(argc, argv);
}
