#include "lab/program/commands.hpp"

#include <array>

#include "lab/bench/plan/launch.hpp"
#include "lab/program/cleanup.hpp"
#include "lab/report/report.hpp"
#include "tool/documents.hpp"

namespace lockflight::lab {
namespace {

constexpr std::array commands{
    entry{lab_commands::bench, bench_command},
    entry{lab_commands::tune, tune_command},
    entry{lab_commands::check, check_command},
    entry{lab_commands::reproduce, reproduce_command},
    entry{lab_commands::grid, grid_command},
    entry{lab_commands::report, report_command},
    entry{lab_commands::doctor, doctor_command},
    entry{help_listing, [] { return help_command(lab_program()); }},
    entry{completion_listing, [] { return completion_command(lab_program()); }},
    entry{man_listing, [] { return man_command(lab_program()); }},
};

constexpr std::array environment{
    environment_variable{
        "LOCKFLIGHT_PROFILE",
        "A profile that 'lockflight tune' has made, for programs that use the library for C or "
        "run under the drop-in for MPI; this program has bench --profile"},
};

constexpr int bad_input = 2;

int exit_code_of(const std::exception& thrown) {
  return dynamic_cast<const report::bad_input*>(&thrown) == nullptr ? 0 : bad_input;
}

}  // namespace

const about& lab_program() {
  static const about program{
      .name = "lockflight-lab",
      .summary = "the commands of lockflight that measure and check its locks",
      .commands = commands,
      .environment = environment,
      .exit_code_of = exit_code_of,
      // All processes of a launch find an error in the command line; one reports it.
      .speaks = bench::speaks,
  };
  return program;
}

int run_lab(int argc, const char* const* argv) {
  clean_up_when_interrupted();
  return tool::run(lab_program(), argc, argv);
}

}  // namespace lockflight::lab
