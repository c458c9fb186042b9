// lockflight doctor: tests whether the locks work on this MPI, and how fast.
#include <fmt/format.h>

#include "bench/plan/launch.hpp"
#include "cli/command.hpp"
#include "cli/console.hpp"
#include "cli/text.hpp"
#include "cli/usage.hpp"

namespace lockflight::cli {
namespace {

constexpr const char* only_mpi = "mpi";

int run_doctor(const arguments& given, console& out) {
  const std::string fabric = given.one("--fabric").value_or(only_mpi);
  if (fabric != only_mpi) throw unknown_name("--fabric", fabric, {only_mpi});
  bench::launch* const launched = bench::launch_of(fabric);
  if (launched == nullptr)
    throw refuse(
        "--fabric", fabric,
        "in a build with MPI, build/openmpi/lockflight or build/mpich/lockflight; this one "
        "has none");
  launched->start();
  const bench::launch::diagnosis found = launched->diagnose();
  std::vector<labelled> rows;
  for (const auto& [what, is] : found.findings) rows.push_back({what, is});
  out.print(two_columns(rows, out.width() == 0 ? 100 : out.width(), 0));
  for (const std::string& advice : found.advice) {
    out.line();
    out.print(wrapped(advice, out.width() == 0 ? 100 : out.width(), 0));
  }
  return bench::speaks() && !found.usable ? 1 : 0;
}

}  // namespace

command doctor_command() {
  return {
      .name = "doctor",
      .summary = "test the one-sided operations of an MPI",
      .description =
          {"Tests the MPI that this program is built with, with the ranks of this launch: which "
           "read-modify-writes are atomic, whether a target that computes delays operations on its "
           "memory, what an operation costs; and says what to do about it. Exits with 1 when locks "
           "cannot work on this MPI."},
      .options = {{.name = "--fabric",
                   .value = "FABRIC",
                   .what = "the fabric to try (default, and only one: mpi)",
                   .completes = option::offer::words,
                   .known = {only_mpi}}},
      .examples = {{"mpirun -n 4 build/mpich/lockflight doctor --fabric mpi",
                    "MPICH with four ranks; a few seconds"}},
      .run = run_doctor,
  };
}

}  // namespace lockflight::cli
