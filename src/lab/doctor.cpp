// lockflight doctor: tests whether the locks work on this MPI, and how fast.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "bench/fit/fit.hpp"
#include "bench/plan/launch.hpp"
#include "bench/plan/networks.hpp"
#include "lab/commands.hpp"
#include "lab/open_files.hpp"
#include "lab/output_file.hpp"
#include "tool/console.hpp"
#include "tool/table.hpp"
#include "tool/text.hpp"
#include "tool/usage.hpp"
#include "tool/version.hpp"

namespace lockflight::lab {
namespace {

constexpr const char* json_argument = "--json";
constexpr const char* machine_argument = "--machine-out";

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
                            {"direct", host.direct},
                            {"ordered_posts", host.ordered_posts},
                            {"computing_us", host.computing_us},
                            {"computed_us", host.computed_us}});
  return all;
}

void print_hosts(const std::vector<bench::launch::diagnosis::host>& hosts, console& out) {
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
  for (const auto& host : hosts)
    t.add_row({{host.name},
               {std::to_string(host.ranks)},
               {std::to_string(host.cores)},
               {rounded(host.put_us)},
               {rounded(host.get_us)},
               {rounded(host.fetch_add_us)},
               {rounded(host.compare_swap_us)},
               {rounded(host.computing_us)},
               {host.direct ? "direct" : "emulated"},
               {host.ordered_posts ? "yes" : "no"}});
  t.print(out);
  out.line(
      fmt::format("'it computes': the longest fetch-add while the target computes for {} us "
                  "without calling the library.",
                  rounded(hosts.front().computed_us)));
}

int run_doctor(const arguments& given, console& out) {
  // A program with a launch built in tries that one.
  const bench::launch* const own = bench::built_in_launch();
  const std::string fabric =
      given.one("--fabric")
          .value_or(own != nullptr ? own->fabric() : std::string(bench::networks[0].name));
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
  if (!found.hosts.empty()) print_hosts(found.hosts, out);
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
           "computes delays "
           "operations on its memory, and what an operation costs. Then it says what to do about "
           "it. "
           "Over several hosts it also prints a table of operations between them. The exit code is "
           "1 "
           "if locks cannot work there."},
      .options = {{.name = "--fabric",
                   .value = "FABRIC",
                   .what = fmt::format(
                       "the fabric to try: {} (default: the one of this build, else {})",
                       joined(bench::names_of_networks()), bench::networks[0].name),
                   .completes = option::offer::words,
                   .known = bench::names_of_networks()},
                  {.name = json_argument,
                   .value = "FILE|-",
                   .what = "write the findings as JSON; - prints that alone",
                   .completes = option::offer::files},
                  {.name = machine_argument,
                   .value = "FILE",
                   .what = "fit a machine of the simulator to this fabric, for bench --machine; "
                           "needs ranks on two nodes",
                   .completes = option::offer::files}},
      .examples =
          {{"mpirun -n 4 build/mpich/lockflight doctor --fabric mpi",
            "test MPICH with four ranks, in a few seconds"},
           {"./dev hosts --launch ucx -- build/lockflight doctor --fabric ucx",
            "test UCX between two hosts"},
           {"mpirun -n 4 build/lockflight doctor --fabric ucx --machine-out m.toml",
            "fit a machine to two hosts, for bench --fabric sim --machine m.toml --procs 4"}},
      .run = run_doctor,
  };
}

}  // namespace lockflight::lab
