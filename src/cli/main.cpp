// The program's front. It runs a command under a lock itself, and becomes one of the whole programs
// for all else: those load libraries that take longer to load than a lock takes to be had.
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "cli/asks_for.hpp"
#include "cli/guarded.hpp"
#include "cli/printable.hpp"
#include "cli/standard_streams.hpp"
#include "lockflight/domain.hpp"

namespace {

using namespace lockflight;

constexpr int environment_failed = 3;

/// full/lockflight beside this one in a build, lockflight.full where it is installed; likewise for
/// the fabrics that have a program of their own. Returns where neither is there.
void become(const std::string& which, char** argv) {
  std::error_code none;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", none);
  if (none) return;
  execv((self.parent_path() / which / self.filename()).c_str(), argv);
  execv((self.string() + '.' + which).c_str(), argv);
}

/// Nothing where the whole program has to say what is wrong.
std::optional<int> run_at_once(int argc, char** argv) {
  const auto asked = cli::sound_run_line(argc, argv);
  if (!asked) return std::nullopt;
  try {
    return cli::run_guarded(*asked);
  } catch (const domain_error& e) {
    if (e.why == domain_error::reason::invalid) return std::nullopt;
    const bool theirs = e.why == domain_error::reason::disagrees;
    std::fprintf(stderr, "lockflight run: %s\n", cli::printable(e.what()).c_str());
    return theirs ? 2 : environment_failed;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "lockflight run: %s\n", cli::printable(e.what()).c_str());
    return environment_failed;
  }
}

}  // namespace

int main(int argc, char** argv) {
  cli::fill_standard_streams();
  if (argc > 1 && std::string_view(argv[1]) == "run")
    if (const auto code = run_at_once(argc, argv)) return *code;
  for (const char* fabric : {"ucx", "libfabric", "oshmem"})
    if (cli::asks_for(fabric, argc, argv)) become(fabric, argv);
  become("full", argv);
  std::fputs("lockflight: its other half, full/lockflight or lockflight.full, is not beside it\n",
             stderr);
  return environment_failed;
}
