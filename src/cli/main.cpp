#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "cli/asks_for.hpp"
#include "cli/program.hpp"

namespace {

/// UCX is in a program of its own, so that this one starts without it: ucx/lockflight beside this
/// one in a build, lockflight.ucx where it is installed. Returns where neither is there.
void become_the_one_with_ucx(char** argv) {
  std::error_code none;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", none);
  if (none) return;
  execv((self.parent_path() / "ucx" / self.filename()).c_str(), argv);
  execv((self.string() + ".ucx").c_str(), argv);
}

}  // namespace

int main(int argc, char** argv) {
  if (lockflight::cli::asks_for("ucx", argc, argv)) become_the_one_with_ucx(argv);
  return lockflight::cli::run_program(argc, argv);
}
