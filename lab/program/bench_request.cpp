#include "lab/program/bench_request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "lab/bench/plan/launch.hpp"
#include "lab/bench/plan/limits.hpp"
#include "lab/bench/plan/networks.hpp"
#include "lab/sim/machine.hpp"
#include "lockflight/fabric/shm.hpp"
#include "lockflight/profile.hpp"
#include "tool/text.hpp"
#include "tool/usage.hpp"
#include "tool/values.hpp"

namespace lockflight::lab {
namespace {

constexpr const char* every_lock = "all";

std::vector<std::string> lock_names() {
  std::vector<std::string> names;
  for (const auto& row : bench::lock_table()) names.emplace_back(row.about.name);
  return names;
}

std::vector<std::string> workload_names() {
  std::vector<std::string> names;
  for (const auto& row : bench::workloads()) names.push_back(row.name);
  return names;
}

std::vector<std::string> fabric_names() {
  std::vector<std::string> names;
  for (const auto& row : bench::lock_table())
    for (const std::string& fabric : row.fabrics)
      if (std::find(names.begin(), names.end(), fabric) == names.end()) names.push_back(fabric);
  return names;
}

std::vector<std::string> with(std::vector<std::string> names, const std::string& another) {
  names.insert(names.begin(), another);
  return names;
}

std::vector<std::string> parameter_offers() {
  std::vector<std::string> offers;
  for (const auto& row : bench::lock_table())
    for (const auto& p : row.parameters)
      if (const std::string offer = std::string(p.name) + "=";
          std::find(offers.begin(), offers.end(), offer) == offers.end())
        offers.push_back(offer);
  return offers;
}

std::vector<std::string> sweep_offers() {
  std::vector<std::string> offers = parameter_offers();
  for (const auto& row : bench::sweepable_settings()) offers.push_back(row.name + "=");
  return offers;
}

std::vector<std::string> locks_of(const arguments& given) {
  if (!given.has("--lock")) return {every_lock};
  return words("--lock", joined(given.all("--lock"), ","),
               "names of locks joined by commas, or all");
}

/// 1, 2, 4, … and as many as there are cores.
std::vector<int> up_to_cores() {
  const shm::hardware found = shm::discover(1);
  const int cores = std::clamp(std::min(found.cores, found.processors), 1, shm::most_ranks);
  std::vector<int> procs;
  for (int n = 1; n < cores; n *= 2) procs.push_back(n);
  procs.push_back(cores);
  return procs;
}

std::vector<int> procs_of(const arguments& given, const std::string& fabric) {
  bench::launch* const launched = bench::launch_of(fabric);
  if (launched != nullptr && !given.has("--procs") && !given.has("--levels")) {
    launched->start();
    return {launched->ranks()};
  }
  if (given.has("--procs"))
    return any_whole_numbers("--procs", joined(given.all("--procs"), ","),
                             bench::in_words(bench::procs_limits(fabric)));
  if (const auto levels = given.one("--levels")) return {bench::ranks_of_levels(*levels, fabric)};
  constexpr int usual_simulated = 64;
  return fabric == "sim" ? std::vector{usual_simulated} : up_to_cores();
}

bench::role role_of(const std::string& text) {
  if (text == "process") return bench::role::process;
  if (text == "operation") return bench::role::operation;
  throw unknown_name("--role", text, {"process", "operation"});
}

/// A number that the benchmark checks.
std::uint64_t whole(const char* option, const std::string& text,
                    bench::limits<std::uint64_t> accepted) {
  return any_whole_number(option, text, bench::in_words(accepted));
}
double real(const char* option, const std::string& text, bench::limits<double> accepted) {
  return any_real_number(option, text, bench::in_words(accepted));
}

/// Either a number of operations or a time.
void read_length(const arguments& given, bench::request& to) {
  constexpr double usual_simulated_s = 0.001;
  const auto ops = given.one("--ops");
  const auto seconds = given.one("--seconds");
  if (ops && seconds)
    throw refuse(
        "--ops", *ops,
        fmt::format("--ops or --seconds, not both; --seconds is {} already", shown(*seconds)));
  if (ops) {
    to.ops = whole("--ops", *ops, bench::ops_limits);
    // In a request 0 says that the time ends a run.
    if (to.ops == 0) throw refuse("--ops", *ops, bench::in_words(bench::ops_limits));
  }
  if (seconds)
    to.seconds = real("--seconds", *seconds, bench::seconds_limits(to.fabric));
  else if (to.fabric == "sim")
    to.seconds = usual_simulated_s;
}

/// In a request 0 says that the smallest elements are the nodes. Which levels there are depends on
/// the machine.
int node_level_of(const std::string& text) {
  constexpr const char* accepted = "a level of the machine, from 1";
  const std::uint64_t level = any_whole_number("--node-level", text, accepted);
  if (level < 1 || level > std::numeric_limits<int>::max())
    throw refuse("--node-level", text, accepted);
  return static_cast<int>(level);
}

void read_parameters(const arguments& given, bench::request& to) {
  for (const std::string& text : given.all("--set")) {
    const auto [name, value] = assignment("--set", text);
    if (!to.set.emplace(name, value).second)
      throw refuse("--set", text, fmt::format("each parameter once; {} is set already", name));
  }
}

/// In a launch every process reads it, and all continue or none.
void read_profile(const arguments& given, bench::request& to) {
  const auto path = given.one("--profile");
  if (!path) return;
  bench::launch* const launched = bench::launch_of(to.fabric);
  try {
    const profile found = profile::read(*path);
    for (const auto& [lock, of] : found.locks()) to.tuned[lock] = of.parameters;
  } catch (const bad_profile& e) {
    if (launched != nullptr) static_cast<void>(launched->all(false));
    throw usage_error(fmt::format("--profile {}", e.what()));
  }
  if (launched != nullptr && !launched->all(true))
    throw refuse("--profile", *path, "a profile that every rank can read");
}

std::optional<bench::setting_row> setting_of(const std::string& name) {
  for (const auto& row : bench::sweepable_settings())
    if (row.name == name) return row;
  return std::nullopt;
}

void read_machine(const arguments& given, bench::request& to) {
  constexpr double most = 1e12;
  to.profile = given.one("--machine").value_or("");
  to.nodes = given.one("--nodes").value_or("");
  for (const std::string& text : given.all("--machine-set")) {
    const std::size_t at = text.find('=');
    if (at == 0 || at == std::string::npos)
      throw refuse("--machine-set", text, "TABLE.KEY=V, such as nic.atomic_engines=4");
    const std::string name = text.substr(0, at);
    to.machine_set[name] =
        real_number(fmt::format("--machine-set {}=", name), text.substr(at + 1), 0, most);
  }
}

void read_sweep(const arguments& given, bench::request& to) {
  const auto text = given.one("--sweep");
  if (!text) return;
  constexpr const char* accepted = "a name and numbers, such as T_R=10,100,1000 or locks=1,2,4";
  const std::size_t at = text->find('=');
  if (at == 0 || at == std::string::npos) throw refuse("--sweep", *text, accepted);
  to.sweep = text->substr(0, at);
  const auto setting = setting_of(to.sweep);
  if (const std::string option = "--" + to.sweep; setting && given.has(option))
    throw refuse("--sweep", *text, fmt::format("a setting that {} does not give", option));
  for (const std::string& value : words("--sweep", text->substr(at + 1), accepted)) {
    std::string one = to.sweep;
    one.append("=").append(value);
    if (!setting)
      to.sweep_values.push_back(static_cast<double>(assignment("--sweep", one).second));
    else if (setting->whole)
      to.sweep_values.push_back(
          static_cast<double>(any_whole_number("--sweep", value, "a whole number")));
    else
      to.sweep_values.push_back(any_real_number("--sweep", value, "a number"));
  }
}

/// Options that only some workloads accept.
void read_extras(const arguments& given, bench::request& to) {
  if (const auto sample = given.one("--sample"))
    to.sample = whole("--sample", *sample, bench::sample_limits);
  if (const auto locks = given.one("--locks"))
    to.table_size = whole("--locks", *locks, bench::locks_limits);
  if (const auto locality = given.one("--locality"))
    to.locality = real("--locality", *locality, bench::locality_limits);
  if (const auto think = given.one("--think"))
    to.think_us = real("--think", *think, bench::think_limits_us);
  if (const auto call = given.one("--call"))
    to.call_us = real("--call", *call, bench::call_limits_us);
  if (const auto hold = given.one("--hold"))
    to.hold_us = real("--hold", *hold, bench::hold_limits_us);
  if (const auto skew = given.one("--skew")) to.skew = real("--skew", *skew, bench::skew_limits);
  to.server_busy = given.has("--server-busy");
  if (const auto load = given.one("--server-load"))
    to.server_load = whole("--server-load", *load, bench::server_load_limits);
  if (const auto bytes = given.one("--bytes"))
    to.bytes = whole("--bytes", *bytes, bench::bytes_limits);
  to.operation = given.one("--operation");
  if (const auto rank = given.one("--flags-at"))
    to.flags_at = whole("--flags-at", *rank, bench::flags_at_limits);
}

std::vector<option> what_to_run() {
  using enum option::offer;
  return {
      {.name = "--lock",
       .value = "A,B|all",
       .what = "the locks to compare (default: all); 'lockflight locks' lists them",
       .completes = list_of_words,
       .known = with(lock_names(), every_lock),
       .repeats = true},
      {.name = "--workload",
       .value = "W",
       .what = "the work of the ranks, see below (default: ecsb)",
       .completes = words,
       .known = workload_names()},
      {.name = "--fabric",
       .value = "FABRIC",
       .what = fmt::format("the fabric that carries the operations (default: shm; known: {}; with "
                           "their libraries {}, see docs/fabrics.md)",
                           joined(fabric_names()), joined(bench::names_of_networks())),
       .completes = words,
       .known = fabric_names()},
      {.name = "--machine",
       .value = "FILE|NAME",
       .what = "sim: the machine, as a file or one of " + joined(sim::names_of_machines()),
       .completes = files},
      {.name = "--machine-set",
       .value = "TABLE.KEY=V",
       .what = "sim: replace a number of the machine file; may be given several times",
       .repeats = true},
      {.name = "--nodes",
       .value = "LIST",
       .what = "sim: the nodes of the machine to use, such as 0,6-11 (default: the first ones)"},
      {.name = "--procs",
       .value = "N[,N...]",
       .what =
           fmt::format("the numbers of ranks, each from 1 to {}, sim: {} (default: 1, 2, 4, ... "
                       "up to the cores, sim: 64, or the product of --levels)",
                       bench::procs_limits("shm").most, bench::procs_limits("sim").most),
       .repeats = true},
      {.name = "--levels",
       .value = "AxB[xC]",
       .what = "a balanced machine: 2x4 is 2 elements of 4 ranks (default: what hwloc finds)"},
      {.name = "--node-level",
       .value = "I",
       .what = "the level whose elements are the nodes (default: the smallest of --levels)"},
  };
}

std::vector<option> how_to_run() {
  using enum option::offer;
  return {
      {.name = "--writers",
       .value = "F",
       .what = "F_W, the fraction of the operations that write, 0 to 1 (default: 0.002)"},
      {.name = "--role",
       .value = "process|operation",
       .what = "who writes: some ranks all the time, or each rank by chance at each operation "
               "(default: operation)",
       .completes = words,
       .known = {"process", "operation"}},
      {.name = "--ops",
       .value = "N",
       .what = "end each run after N operations of all ranks together, instead of a time"},
      {.name = "--seconds",
       .value = "S",
       .what = "how many seconds each run takes (default: 1; sim: of virtual time, 0.001)"},
      {.name = "--seed", .value = "N", .what = "the seed of all random choices (default: 1)"},
      {.name = "--set",
       .value = "NAME=VALUE",
       .what = "set a parameter of the locks; may be given several times",
       .completes = words,
       .known = parameter_offers(),
       .repeats = true},
      {.name = "--profile",
       .value = "FILE",
       .what =
           "take the parameters that 'lockflight tune' has found; --set and --sweep override them",
       .completes = files},
      {.name = "--sweep",
       .value = "NAME=V,V,...",
       .what = "run once for each of these values of a parameter, with the locks that have it, or "
               "of writers, locks, locality, hold or bytes",
       .completes = words,
       .known = sweep_offers()},
      {.name = "--sample",
       .value = "N",
       .what = "ecsb, sob: time one operation in N, so that the clock costs less (default: 1)"},
      {.name = "--locks",
       .value = "N",
       .what = "table: the number of locks, spread over the nodes (default: 100); contention: the "
               "number of locks on rank 0 (default: 1); zipf: the same (default: 1000)"},
      {.name = "--locality",
       .value = "F",
       .what =
           "table: the fraction of the operations on locks of the own node, 0 to 1 (default: 1)"},
      {.name = "--think",
       .value = "US",
       .what = "table: how long a rank computes between two operations, in microseconds, which "
               "counts as no latency (default: 0)"},
      {.name = "--call",
       .value = "US",
       .what = "table: how long a rank computes in each operation before the acquire, in "
               "microseconds, which counts as latency (default: 0)"},
      {.name = "--hold",
       .value = "US",
       .what = "contention: how long a lock is held, in microseconds (default: 0)"},
      {.name = "--skew",
       .value = "S",
       .what = "zipf: the exponent of Zipf's law, 0 for locks that are equally likely (default: "
               "0.99)"},
      {.name = "--server-busy", .what = "contention: let rank 0 compute all the time"},
      {.name = "--server-load",
       .value = "N",
       .what =
           "contention, sim: let N busy processes share the cores of rank 0's node (default: 0)"},
      {.name = "--bytes",
       .value = "K",
       .what = "dht-writer: how many bytes are written each time (default: 512)"},
      {.name = "--operation",
       .value = "NAME",
       .what = "primitive: the operation to measure (default: each of them)",
       .completes = words,
       .known = bench::operations()},
      {.name = "--flags-at",
       .value = "RANK",
       .what = "stencil: the rank at which the flags of all ranks lie (default: each rank's own)"},
      {.name = "--threads", .what = "make the ranks threads of one process instead of processes"},
      {.name = "--waiting",
       .value = "HOW",
       .what = "how ranks wait: auto, spin, yield or park (default: auto)",
       .completes = words,
       .known = {"auto", "spin", "yield", "park"}},
      {.name = "--no-pin", .what = "do not bind ranks to processors"},
      {.name = "--witness",
       .what = joined(bench::names_of_networks()) +
               ": check mutual exclusion by one-sided operations, which see holders on several "
               "hosts; the times are then those of the check too"},
  };
}

}  // namespace

std::vector<option> bench_request_options() {
  std::vector<option> all = what_to_run();
  for (option& o : how_to_run()) all.push_back(std::move(o));
  return all;
}

bench::request bench_request(const arguments& given) {
  bench::request request;
  request.locks = locks_of(given);
  request.workload = given.one("--workload").value_or(request.workload);
  request.fabric = given.one("--fabric").value_or(request.fabric);
  read_machine(given, request);
  request.procs = procs_of(given, request.fabric);
  request.levels = given.one("--levels").value_or("");
  if (const auto level = given.one("--node-level")) request.node_level = node_level_of(*level);
  if (const auto writers = given.one("--writers"))
    request.writers = real("--writers", *writers, bench::writers_limits);
  if (const auto role = given.one("--role")) request.by = role_of(*role);
  read_length(given, request);
  if (const auto seed = given.one("--seed"))
    request.seed = whole("--seed", *seed, bench::seed_limits);
  read_parameters(given, request);
  read_profile(given, request);
  read_sweep(given, request);
  read_extras(given, request);
  request.threads = given.has("--threads");
  request.pin = !given.has("--no-pin");
  request.witness = given.has("--witness");
  request.waiting = given.one("--waiting").value_or(request.waiting);
  request.trace = given.one("--trace").value_or("");
  bench::validate(request);
  return request;
}

}  // namespace lockflight::lab
