// lockflight doctor: tests whether the locks work on this MPI, and how fast; or says which drop-in
// fits a program.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/visible_text.hpp"
#include "lab/bench/fit/fit.hpp"
#include "lab/bench/plan/launch.hpp"
#include "lab/bench/plan/networks.hpp"
#include "lab/program/commands.hpp"
#include "lab/program/elf_file.hpp"
#include "lab/program/open_files.hpp"
#include "lab/program/output_file.hpp"
#include "lab/program/program_mpi.hpp"
#include "lockflight/fabric/shm.hpp"
#include "tool/console.hpp"
#include "tool/table.hpp"
#include "tool/text.hpp"
#include "tool/usage.hpp"
#include "tool/version.hpp"

namespace lockflight::lab {
namespace {

constexpr const char* json_argument = "--json";
constexpr const char* machine_argument = "--machine-out";
constexpr const char* program_argument = "--program";
constexpr const char* shared_memory = "shm";

nlohmann::json json_of(const bench::launch::diagnosis& found) {
  nlohmann::json all{{"lockflight", version()},
                     {"usable", found.usable},
                     {"findings", nlohmann::json::object()},
                     {"advice", found.advice},
                     {"hosts", nlohmann::json::array()}};
  for (const auto& [what, is] : found.findings) all["findings"][what] = is;
  for (const auto& host : found.hosts)
    all["hosts"].push_back({{"name", host.name},
                            {"ranks", host.ranks},
                            {"cores", host.cores},
                            {"put_us", host.put_us},
                            {"get_us", host.get_us},
                            {"fetch_add_us", host.fetch_add_us},
                            {"compare_swap_us", host.compare_swap_us},
                            {"direct", host.direct()},
                            {"ordered_posts", found.ordered_posts},
                            {"computing_us", host.computing_us},
                            {"computed_us", host.computed_us}});
  return all;
}

void print_hosts(const bench::launch::diagnosis& found, console& out) {
  out.line();
  out.line(out.paint(style::heading, "From another host, in microseconds"));
  table t({{.title = "host", .numeric = false},
           {.title = "ranks"},
           {.title = "cores"},
           {.title = "put"},
           {.title = "get"},
           {.title = "fetch-add"},
           {.title = "compare-swap"},
           {.title = "it computes"},
           {.title = "operations", .numeric = false},
           {.title = "ordered posts", .numeric = false}});
  for (const auto& host : found.hosts)
    t.add_row({{host.name},
               {std::to_string(host.ranks)},
               {std::to_string(host.cores)},
               {rounded(host.put_us)},
               {rounded(host.get_us)},
               {rounded(host.fetch_add_us)},
               {rounded(host.compare_swap_us)},
               {rounded(host.computing_us)},
               {host.direct() ? "direct" : "emulated"},
               {found.ordered_posts ? "yes" : "no"}});
  t.print(out);
  out.line(
      fmt::format("'it computes': the longest fetch-add while the target computes for {} us "
                  "without calling the library.",
                  rounded(found.hosts.front().computed_us)));
}

/// The results on a program: in the order of a table's rows, and what to do about them.
struct program_findings {
  std::vector<labelled> rows;
  std::string advice;
  bool fits = false;
};

program_findings findings_of(const std::string& path, const program_mpi& found) {
  program_findings says{.rows = {{"program", visible(path)}}, .advice = "", .fits = false};
  if (!found.is_dynamic) {
    says.rows.push_back({"MPI", "linked statically, if there is one"});
    says.advice = "Nothing can be preloaded: link the program with the MPI's shared library.";
    return says;
  }
  if (found.interface == mpi_interface::unknown) {
    says.rows.push_back({"MPI", "none that is known among the shared libraries that it needs"});
    for (const std::string& name : found.missing) says.rows.push_back({"not found", shown(name)});
    says.advice =
        found.missing.empty()
            ? "If the program loads its MPI when it runs, as Python does, give the module that "
              "does, such as mpi4py's MPI.*.so. An MPI that is linked statically has no drop-in."
            : "Set LD_LIBRARY_PATH as for a run of the program: an MPI may be behind a library "
              "that was not found.";
    return says;
  }
  const about_mpi_interface& its = details_of(found.interface);
  says.rows.push_back(
      {"MPI", fmt::format("{}: {} needs {}", its.name,
                          found.needed_by == path ? "the program" : visible(found.needed_by),
                          visible(found.library))});
  says.rows.push_back(
      {"preload", found.drop_in.empty()
                      ? fmt::format("{} (not in this build or installation)", its.drop_in)
                      : found.preload()});
  if (found.is_privileged) {
    says.advice = "The program is set-user-ID or set-group-ID, and the loader preloads nothing.";
    return says;
  }
  says.fits = !found.drop_in.empty();
  if (found.interface == mpi_interface::standard)
    says.advice =
        "This drop-in is for C and C++. The standard has no binary interface for Fortran, so calls "
        "in Fortran keep the locks of the MPI unless its bindings call those of C.";
  if (!found.address_sanitizer.empty())
    says.advice += std::string(says.advice.empty() ? "" : " ") +
                   "The program has AddressSanitizer, whose library must be preloaded first: "
                   "LD_PRELOAD is all of what is named above, with the colon.";
  if (found.drop_in.empty() && found.interface == mpi_interface::standard)
    says.advice = "It is built where ./dev setup mpi has fetched an MPI that has this interface.";
  return says;
}

nlohmann::json json_of(const program_mpi& found, const program_findings& says) {
  nlohmann::json all{{"lockflight", version()},      {"fits", says.fits},
                     {"interface", nullptr},         {"needs", found.library},
                     {"needed_by", found.needed_by}, {"preload", found.preload()},
                     {"not_found", found.missing},   {"advice", says.advice}};
  if (found.interface != mpi_interface::unknown)
    all["interface"] = details_of(found.interface).name;
  return all;
}

int run_for_program(const std::string& path, const arguments& given, console& out) {
  for (const char* other : {"--fabric", machine_argument})
    if (const auto value = given.one(other))
      throw refuse(other, *value,
                   fmt::format("none with {}, which tests no fabric", program_argument));
  program_mpi found;
  try {
    found = mpi_of_program(path);
  } catch (const unreadable_elf& e) {
    throw refuse(
        program_argument, path,
        fmt::format("a program or a shared library of this machine; {}", visible(e.what())));
  }
  const program_findings says = findings_of(path, found);
  const auto json = given.one(json_argument);
  if (json == "-") {
    out.line(json_of(found, says).dump(2));
    return says.fits ? 0 : 1;
  }
  const int width = out.width() == 0 ? 100 : out.width();
  out.print(two_columns(says.rows, width, 0));
  if (!says.advice.empty()) {
    out.line();
    out.print(wrapped(says.advice, width, 0));
  }
  if (json) {
    output_file file(json_argument, *json);
    file.commit(json_of(found, says).dump(2) + "\n");
    out.line("wrote " + file.path());
  }
  return says.fits ? 0 : 1;
}

// Shared memory has nothing to be tested, but a machine can be fitted to it.
int fit_to_shared_memory(const arguments& given, console& out) {
  const auto path = given.one(machine_argument);
  if (!path)
    throw refuse("--fabric", shared_memory,
                 fmt::format("{} without {}, which is all that can be done with {}",
                             joined(bench::names_of_networks()), machine_argument, shared_memory));
  if (const auto json = given.one(json_argument))
    throw refuse(json_argument, *json, fmt::format("none with --fabric {}", shared_memory));
  const int cores = shm::discover(1).processors;
  if (cores < 2)
    throw refuse(machine_argument, *path,
                 "on two processors at least, since what is measured is the way from one to the "
                 "other");
  output_file machine(machine_argument, *path);
  machine.commit(bench::fit_shared_memory(cores));
  out.line("wrote " + machine.path());
  return 0;
}

int run_doctor(const arguments& given, console& out) {
  if (const auto path = given.one(program_argument)) return run_for_program(*path, given, out);
  if (given.one("--fabric") == shared_memory) return fit_to_shared_memory(given, out);
  // A program with a launch built in tries that one.
  const bench::launch* const own = bench::built_in_launch();
  const std::string fabric =
      given.one("--fabric")
          .value_or(own != nullptr ? own->fabric() : bench::names_of_networks().front());
  const bench::network_fabric* const known = bench::network_of(fabric);
  if (known == nullptr) throw unknown_name("--fabric", fabric, bench::names_of_networks());
  bench::launch* const launched = bench::launch_of(fabric);
  if (launched == nullptr)
    throw refuse("--fabric", fabric, fmt::format("{}; this one has none", known->where));
  launched->start();
  std::optional<output_file> file;
  std::optional<output_file> machine;
  const auto machine_path = given.one(machine_argument);
  if (machine_path) bench::require_nodes_to_fit(*launched, *machine_path);
  const auto path = given.one(json_argument);
  const bool json_alone = path == "-";
  open_files(launched, [&] {
    if (path && !json_alone) file.emplace(json_argument, *path);
    if (machine_path) machine.emplace(machine_argument, *machine_path);
    refuse_same(file, json_argument, machine, machine_argument);
  });
  const bench::launch::diagnosis found = launched->diagnose();
  const int code = bench::speaks() && !found.usable ? 1 : 0;
  if (machine_path) {
    const std::string fitted = bench::fit_machine(*launched);
    if (machine) machine->commit(fitted);
  }
  if (file) file->commit(json_of(found).dump(2) + "\n");
  if (json_alone) {
    out.line(json_of(found).dump(2));
    return code;
  }
  std::vector<labelled> rows;
  for (const auto& [what, is] : found.findings) rows.push_back({what, is});
  out.print(two_columns(rows, out.width() == 0 ? 100 : out.width(), 0));
  if (!found.hosts.empty()) print_hosts(found, out);
  for (const std::string& advice : found.advice) {
    out.line();
    out.print(wrapped(advice, out.width() == 0 ? 100 : out.width(), 0));
  }
  for (const auto* each : {&file, &machine})
    if (*each) out.line("wrote " + (*each)->path());
  return code;
}

}  // namespace

command doctor_command() {
  return {
      .description =
          {"Tests the MPI, UCX, libfabric or OpenSHMEM that this program is built with, with the "
           "ranks of this launch: which read-modify-writes are atomic, whether a target that "
           "computes delays operations on its memory, and what an operation costs. Then it says "
           "what to do about it. Over several hosts it also prints a table of operations between "
           "them. The exit code is 1 if locks cannot work there.",
           "With --program it runs nothing: it says which MPI a program is linked with, and which "
           "library to preload so that the program has lockflight's locks in MPI_Win_lock. The "
           "exit code is 1 if none fits."},
      .options = {{.name = "--fabric",
                   .value = "FABRIC",
                   .what = fmt::format(
                       "the fabric to try: {} (default: the one of this build, else {})",
                       joined(bench::names_of_networks()), bench::names_of_networks().front()),
                   .completes = option::offer::words,
                   .known = bench::names_of_networks()},
                  {.name = json_argument,
                   .value = "FILE|-",
                   .what = "write the findings as JSON; - prints that alone",
                   .completes = option::offer::files},
                  {.name = machine_argument,
                   .value = "FILE",
                   .what = "fit a machine of the simulator to this fabric, for bench --machine; "
                           "needs ranks on two nodes, or --fabric shm, which needs no launch",
                   .completes = option::offer::files},
                  {.name = program_argument,
                   .value = "FILE",
                   .what = "say which drop-in for MPI_Win_lock fits this program",
                   .completes = option::offer::files}},
      .examples =
          {{"mpirun -n 4 build/mpich/lockflight doctor --fabric mpi",
            "test MPICH with four ranks, in a few seconds"},
           {"./dev hosts --launch ucx -- build/lockflight doctor --fabric ucx",
            "test UCX between two hosts"},
           {"mpirun -n 4 build/lockflight doctor --fabric ucx --machine-out m.toml",
            "fit a machine to two hosts, for bench --fabric sim --machine m.toml --procs 4"},
           {"lockflight doctor --fabric shm --machine-out m.toml",
            "fit a machine to the cores of this one"},
           {"lockflight doctor --program ./a.out", "which library to preload for an MPI program"}},
      .run = run_doctor,
  };
}

}  // namespace lockflight::lab
