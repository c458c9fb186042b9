#include "lab/bench/plan/request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <system_error>
#include <utility>

#include "base/joined.hpp"
#include "base/visible_text.hpp"
#include "catalogue/nearest.hpp"
#include "lab/bench/plan/launch.hpp"
#include "lab/bench/plan/limits.hpp"
#include "lab/bench/plan/memory.hpp"
#include "lab/bench/plan/networks.hpp"
#include "lab/bench/sim/stage.hpp"
#include "lockflight/fabric/shm.hpp"
#include "lockflight/lock/part/queue_tree.hpp"

namespace lockflight::bench {
namespace {

/// "--procs '0' (accepted: …)".
bad_request refuse(std::string_view argument, std::string_view value, std::string_view accepted) {
  return bad_request(fmt::format("{} {} (accepted: {})", argument, in_quotes(value), accepted));
}

template <class Number>
void require(limits<Number> accepted, std::string_view argument, Number value) {
  if (!accepted.admit(value)) throw refuse(argument, fmt::format("{}", value), in_words(accepted));
}

bad_request unknown(std::string_view argument, const std::string& value,
                    const std::vector<std::string>& known) {
  return bad_request(
      fmt::format("{} {} {}", argument, in_quotes(value), catalogue::accepted_names(value, known)));
}

template <class Rows>
std::vector<std::string> names_of(const Rows& rows) {
  std::vector<std::string> names;
  for (const auto& row : rows) names.emplace_back(row.name);
  return names;
}

workload chosen_workload(const request& what) {
  if (const auto known = workload_of(what.workload)) return *known;
  throw unknown("--workload", what.workload, names_of(workloads()));
}

/// The part of an error message that says which build has a fabric that this build lacks.
std::string other_builds(std::string_view fabric) {
  if (const network_fabric* const known = network_of(fabric))
    return fmt::format("; {} is {}", known->name, known->where);
  return "; with their libraries also " + joined(names_of_networks());
}

bool simulated(const request& what) { return what.fabric == "sim"; }

void check_fabric(const request& what) {
  const auto& here = fabrics();
  if (std::find(here.begin(), here.end(), what.fabric) == here.end())
    throw refuse(
        "--fabric", what.fabric,
        fmt::format("in this build {}{}", fmt::join(here, ", "), other_builds(what.fabric)));
  if (launch* const it = launch_of(what.fabric)) {
    it->start();
    if (what.threads)
      throw refuse("--threads", "", fmt::format("on shm; ranks of {} are processes", it->fabric()));
  } else if (what.witness) {
    throw refuse("--witness", "",
                 fmt::format("with --fabric {} only; on {} the usual check sees all ranks",
                             joined(names_of_networks()), what.fabric));
  }
  if (!simulated(what)) {
    if (!what.machine_set.empty())
      throw refuse("--machine-set", what.machine_set.begin()->first,
                   fmt::format("with --fabric sim only, not with {}", what.fabric));
    if (!what.profile.empty())
      throw refuse("--machine", what.profile,
                   fmt::format("with --fabric sim only, not with {}", what.fabric));
    if (!what.nodes.empty())
      throw refuse("--nodes", what.nodes,
                   fmt::format("with --fabric sim only, not with {}", what.fabric));
    return;
  }
  if (what.profile.empty())
    throw refuse("--machine", "",
                 fmt::format("a machine file, since --fabric sim needs one, or {}",
                             fmt::join(sim::names_of_machines(), ", ")));
  if (what.threads) throw refuse("--threads", "", "on shm; simulated ranks are neither");
}

/// True if the machine is good without the numbers that replace some of its own.
bool is_good_alone(const std::string& machine) {
  try {
    static_cast<void>(sim::find_machine(machine));
    return true;
  } catch (const sim::bad_machine&) {
    return false;
  }
}

std::shared_ptr<const sim::machine_profile> profile_of(const request& what) {
  if (!simulated(what)) return nullptr;
  try {
    return std::make_shared<const sim::machine_profile>(
        sim::find_machine(what.profile, what.machine_set));
  } catch (const sim::bad_machine& e) {
    const bool is_replaced = !what.machine_set.empty() && is_good_alone(what.profile);
    throw bad_request(fmt::format("{} {}", is_replaced ? "--machine-set" : "--machine", e.what()));
  } catch (const sim::bad_replacement& e) {
    throw bad_request(fmt::format("--machine-set {}", e.what()));
  }
}

/// The most ranks that a fabric can have.
int most_ranks_on(const request& what, const sim::machine_profile* profile) {
  const int most = procs_limits(what.fabric).most;
  if (profile == nullptr) return most;
  return static_cast<int>(std::min(profile->ranks(), static_cast<std::uint64_t>(most)));
}

/// Throws unless the machine has these nodes, and they have room for the ranks.
void check_room(const request& what, const sim::machine_profile& profile,
                const rma::topology& machine) {
  std::vector<std::uint32_t> ranks(static_cast<std::size_t>(machine.nodes()));
  for (const int node : machine.nodes_of_ranks()) ++ranks[static_cast<std::size_t>(node)];
  const std::uint32_t most = *std::max_element(ranks.begin(), ranks.end());
  if (ranks.size() > profile.nodes || most > profile.cores)
    throw refuse("--levels", what.levels,
                 fmt::format("at most {} ranks on each of at most {} nodes: {} has no more; "
                             "these are {} on {}",
                             profile.cores, profile.nodes, profile.name, most, ranks.size()));
}

/// "0,6-11" as the numbers of the machine's nodes. Empty if none were asked for.
std::vector<std::uint32_t> nodes_for(const request& what, const sim::machine_profile* profile,
                                     int count) {
  std::vector<std::uint32_t> nodes;
  if (profile == nullptr || what.nodes.empty()) return nodes;
  const auto refused = [&](const std::string& why) {
    return refuse("--nodes", what.nodes,
                  fmt::format("{} different nodes of {}, 0 to {}, such as 0,2-5; {}", count,
                              profile->name, profile->nodes - 1, why));
  };
  std::set<std::uint32_t> taken;
  for (const char* at = what.nodes.c_str();; ++at) {
    const char* const end = what.nodes.c_str() + what.nodes.size();
    std::uint32_t first = 0;
    auto read = std::from_chars(at, end, first);
    std::uint32_t last = first;
    if (read.ec == std::errc() && *read.ptr == '-') read = std::from_chars(read.ptr + 1, end, last);
    at = read.ptr;
    if (read.ec != std::errc() || (*at != ',' && at != end)) throw refused("these are no numbers");
    if (first > last || last >= profile->nodes)
      throw refused(fmt::format("there is no {}-{}", first, last));
    for (std::uint32_t node = first; node <= last; ++node) {
      if (!taken.insert(node).second) throw refused(fmt::format("{} is there twice", node));
      nodes.push_back(node);
    }
    if (at == end) break;
  }
  if (nodes.size() != static_cast<std::size_t>(count))
    throw refused(fmt::format("these are {}", nodes.size()));
  return nodes;
}

// True if a workload's operations under a lock may be deferred to its release.
bool can_defer(workload w) {
  switch (w) {
    case workload::lb:
    case workload::ecsb:
    case workload::sob:
    case workload::warb:
    case workload::table:
    case workload::mix:
      return true;
    default:
      return false;
  }
}

std::vector<const lock_entry*> chosen_locks(const request& what, workload load) {
  if (what.locks.empty()) throw refuse("--lock", "", "at least one lock");
  if (takes_no_lock(load)) {
    if (what.locks != std::vector<std::string>{"all"})
      throw refuse(
          "--lock", what.locks.front(),
          fmt::format("with another --workload than {}, which takes no lock", what.workload));
    return {std::to_address(std::find_if(entries().begin(), entries().end(),
                                         [](const lock_entry& e) { return !e.excludes; }))};
  }
  std::vector<std::string> known;
  for (const lock_entry& e : entries())
    if ((e.excludes || load == workload::dht) && (!e.about.as_printed || simulated(what)))
      known.emplace_back(e.about.name);
  std::vector<const lock_entry*> chosen;
  for (const std::string& name : what.locks) {
    bool found = false;
    for (const lock_entry& e : entries()) {
      if (name != e.about.name && name != "all") continue;
      if (e.about.needs_native_memory && what.fabric != "shm") {
        if (name == "all") continue;
        throw refuse("--lock", name, fmt::format("on shm only, not on {}", what.fabric));
      }
      if (e.about.as_printed) {
        if (name == "all") continue;
        if (!simulated(what))
          throw refuse("--lock", name,
                       fmt::format("with --fabric sim, in claims of reproduce, and in check; it is "
                                   "a lock as its paper prints it, and not for {}",
                                   what.fabric));
      }
      if (!e.excludes && load != workload::dht) {
        if (name == "all") continue;
        throw refuse("--lock", name, "with --workload dht only, since it is no lock");
      }
      // A lock that guards only deferred operations, is not comparable with the other locks.
      if (e.about.defers && name == "all") continue;
      if (e.about.defers && !can_defer(load))
        throw refuse(
            "--lock", name,
            "with --workload lb, ecsb, sob, warb, table, mix: what is done under it is done "
            "at the release");
      if (std::find(chosen.begin(), chosen.end(), &e) == chosen.end()) chosen.push_back(&e);
      found = true;
    }
    if (!found) throw unknown("--lock", name, known);
  }
  return chosen;
}

void check_levels(const request& what) {
  if (what.levels.empty()) return;
  const int ranks = ranks_of_levels(what.levels, what.fabric);
  if (rma::parse_levels(what.levels).size() > static_cast<std::size_t>(lock::most_levels))
    throw refuse("--levels", what.levels, fmt::format("at most {} levels", lock::most_levels));
  for (const int procs : what.procs)
    if (procs != ranks)
      throw refuse("--levels", what.levels,
                   fmt::format("levels that multiply to --procs {}; these make {}", procs, ranks));
}

void check_procs(const request& what, int most) {
  if (what.procs.empty()) throw refuse("--procs", "", "at least one number of ranks");
  const launch* const it = launch_of(what.fabric);
  const limits<int> accepted = procs_limits(what.fabric);
  for (const int procs : what.procs) {
    if (it != nullptr && (procs < 1 || procs > it->ranks()))
      throw refuse("--procs", std::to_string(procs),
                   fmt::format("1 to {}, the ranks of this launch", it->ranks()));
    if (!accepted.admit(procs))
      throw refuse("--procs", fmt::format("{}", fmt::join(what.procs, ",")), in_words(accepted));
    if (procs > most) throw refuse("--procs", std::to_string(procs), fmt::format("1 to {}", most));
  }
}

void check_amounts(const request& what) {
  require(writers_limits, "--writers", what.writers);
  if (what.ops == 0)
    require(seconds_limits(what.fabric), "--seconds", what.seconds);
  else
    require(ops_limits, "--ops", what.ops);
  try {
    static_cast<void>(shm::wait_policy::parse(what.waiting, 1, 1));
  } catch (const std::invalid_argument& e) {
    throw bad_request(fmt::format("--waiting {}", e.what()));
  }
}

/// Busy processes beside the server, where cores are shared by time slices.
void check_server_load(const request& what, workload load, const sim::machine_profile* profile) {
  if (!what.server_load) return;
  const std::string value = std::to_string(*what.server_load);
  if (load != workload::contention)
    throw refuse("--server-load", value,
                 fmt::format("with --workload contention only, not with {}", what.workload));
  if (profile == nullptr)
    throw refuse("--server-load", value,
                 fmt::format("with --fabric sim only, not with {}", what.fabric));
  if (profile->cpu.slice == 0)
    throw refuse("--server-load", value,
                 fmt::format("on a machine with cpu.slice_ns, which {} has not", profile->name));
  require(server_load_limits, "--server-load", *what.server_load);
}

/// Options that only some workloads accept.
void check_extras(const request& what, workload load) {
  const auto only = [&](bool given, std::string_view argument, const std::string& value, bool here,
                        std::string_view where) {
    if (given && !here)
      throw refuse(argument, value,
                   fmt::format("with --workload {} only, not with {}", where, what.workload));
  };
  only(what.sample.has_value(), "--sample", std::to_string(what.sample.value_or(0)),
       load == workload::ecsb || load == workload::sob, "ecsb or sob");
  only(what.table_size.has_value(), "--locks", std::to_string(what.table_size.value_or(0)),
       load == workload::table || load == workload::contention || load == workload::zipf,
       "table, contention or zipf");
  only(what.locality.has_value(), "--locality", fmt::format("{}", what.locality.value_or(0)),
       load == workload::table, "table");
  only(what.think_us.has_value(), "--think", fmt::format("{}", what.think_us.value_or(0)),
       load == workload::table, "table");
  only(what.call_us.has_value(), "--call", fmt::format("{}", what.call_us.value_or(0)),
       load == workload::table, "table");
  only(what.hold_us.has_value(), "--hold", fmt::format("{}", what.hold_us.value_or(0)),
       load == workload::contention, "contention");
  only(what.skew.has_value(), "--skew", fmt::format("{}", what.skew.value_or(0)),
       load == workload::zipf, "zipf");
  only(what.server_busy, "--server-busy", "", load == workload::contention, "contention");
  only(what.bytes.has_value(), "--bytes", std::to_string(what.bytes.value_or(0)),
       load == workload::dht_writer, "dht-writer");
  only(what.operation.has_value(), "--operation", what.operation.value_or(""),
       load == workload::primitive, "primitive");
  only(what.flags_at.has_value(), "--flags-at", std::to_string(what.flags_at.value_or(0)),
       load == workload::stencil, "stencil");
  if (const auto& known = operations();
      what.operation && std::find(known.begin(), known.end(), *what.operation) == known.end())
    throw unknown("--operation", *what.operation, known);
  if (what.sample) require(sample_limits, "--sample", *what.sample);
  if (what.table_size) require(locks_limits, "--locks", *what.table_size);
  if (what.locality) require(locality_limits, "--locality", *what.locality);
  if (what.think_us) require(think_limits_us, "--think", *what.think_us);
  if (what.call_us) require(call_limits_us, "--call", *what.call_us);
  if (what.hold_us) require(hold_limits_us, "--hold", *what.hold_us);
  if (what.skew) require(skew_limits, "--skew", *what.skew);
  if (what.bytes) require(bytes_limits, "--bytes", *what.bytes);
  for (const int procs : what.procs) {
    if (what.locality && *what.locality < 1 && machine_of(what, procs).nodes() == 1)
      throw refuse(
          "--locality", fmt::format("{}", *what.locality),
          fmt::format("1: the machine with {} ranks is one node; --levels 2x2 makes two", procs));
    if (what.flags_at && *what.flags_at >= static_cast<std::uint64_t>(procs))
      throw refuse("--flags-at", std::to_string(*what.flags_at),
                   fmt::format("a rank, 0 to {}", procs - 1));
    // A writer of the hash table may be alone.
    if ((load == workload::cascade || load == workload::primitive) && procs < 2)
      throw refuse("--procs", std::to_string(procs),
                   fmt::format("at least 2 with --workload {}", what.workload));
  }
}

/// The default exponent of zipf, the ShiftLock and the DecLock papers'.
constexpr double usual_skew = 0.99;

/// The default number of locks: the papers' middle case, or one for each rank or client.
std::uint32_t locks_for(const request& what, workload load, int procs) {
  constexpr std::uint32_t medium_contention = 100;
  // The papers have a hundred times as many. A server of message locks serves so many slowly.
  constexpr std::uint32_t some_popular = 1'000;
  switch (load) {
    case workload::table:
      return static_cast<std::uint32_t>(what.table_size.value_or(medium_contention));
    case workload::contention:
      return static_cast<std::uint32_t>(what.table_size.value_or(1));
    case workload::zipf:
      return static_cast<std::uint32_t>(what.table_size.value_or(some_popular));
    case workload::mix:
      return static_cast<std::uint32_t>(procs);
    default:
      return 1;
  }
}

/// The parameters that are set for a lock, else those of its profile.
catalogue::parameter_values set_for(const request& what, const lock_entry& lock) {
  catalogue::parameter_values all = what.set;
  if (const auto tuned = what.tuned.find(std::string(lock.about.name)); tuned != what.tuned.end())
    all.insert(tuned->second.begin(), tuned->second.end());
  return all;
}

/// The parameters of each run of a lock: as they are set, or once for each value of the sweep that
/// it takes part in.
std::vector<catalogue::parameter_values> settings_for(const request& what, const lock_entry& lock) {
  if (catalogue::find(lock.parameters, what.sweep) == nullptr) return {set_for(what, lock)};
  std::vector<catalogue::parameter_values> all;
  for (const double value : what.sweep_values) {
    all.push_back(set_for(what, lock));
    all.back()[what.sweep] = static_cast<std::int64_t>(value);
  }
  return all;
}

bool sweeps_a_setting(const request& what) {
  const auto& rows = sweepable_settings();
  return std::any_of(rows.begin(), rows.end(),
                     [&](const setting_row& row) { return row.name == what.sweep; });
}

/// The request with one value of the setting that it sweeps, and without the sweep.
request with_setting(request what, double value) {
  const std::string name = std::exchange(what.sweep, "");
  what.sweep_values.clear();
  if (name == "writers") what.writers = value;
  if (name == "locks") what.table_size = static_cast<std::uint64_t>(value);
  if (name == "locality") what.locality = value;
  if (name == "hold") what.hold_us = value;
  if (name == "bytes") what.bytes = static_cast<std::uint64_t>(value);
  return what;
}

/// The level that a parameter T_L<i> is about; 0 for the others.
int level_of(const std::string& name) {
  constexpr std::string_view prefix = "T_L";
  if (name.size() != prefix.size() + 1 || !name.starts_with(prefix)) return 0;
  const char digit = name.back();
  return digit >= '1' && digit <= '9' ? digit - '0' : 0;
}

void check_value(std::string_view argument, const std::string& name, std::int64_t value,
                 const std::vector<const lock_entry*>& locks) {
  std::vector<std::string> known;
  if (argument == "--sweep") known = names_of(sweepable_settings());
  bool found = false;
  for (const lock_entry* lock : locks) {
    for (const catalogue::parameter_row& row : lock->parameters)
      if (std::find(known.begin(), known.end(), row.name) == known.end())
        known.emplace_back(row.name);
    const catalogue::parameter_row* const row = catalogue::find(lock->parameters, name);
    if (row == nullptr) continue;
    found = true;
    if (!row->takes(value))
      throw refuse(argument, fmt::format("{}={}", name, value),
                   fmt::format("{} for {}", row->range(), lock->about.name));
  }
  if (found) return;
  throw bad_request(fmt::format("{} '{}' {}", argument, name, catalogue::why_unknown(name, known)));
}

void check_parameters(const request& what, const std::vector<const lock_entry*>& locks) {
  if (!what.sweep.empty() && what.set.contains(what.sweep))
    throw refuse("--sweep", what.sweep, "a parameter that --set does not give");
  for (const double value : what.sweep_values)
    check_value("--sweep", what.sweep, static_cast<std::int64_t>(value), locks);
  for (const auto& [name, value] : what.set) {
    check_value("--set", name, value, locks);
    if (level_of(name) == 0) continue;
    for (const int procs : what.procs) {
      const int levels = machine_of(what, procs).levels();
      if (level_of(name) > levels)
        throw refuse("--set", fmt::format("{}={}", name, value),
                     fmt::format("a level from 1 to {}, the machine with {} ranks has no other",
                                 levels, procs));
    }
  }
}

void check_ranks_of_locks(const request& what, const std::vector<const lock_entry*>& locks) {
  for (const lock_entry* lock : locks)
    for (const int procs : what.procs)
      if (const std::int64_t most = lock->most_ranks(set_for(what, *lock)); procs > most)
        throw refuse("--procs", std::to_string(procs),
                     fmt::format("1 to {} for {} with these parameters", most, lock->about.name));
}

}  // namespace

rma::topology machine_of(const request& what, int procs) {
  launch* const it = launch_of(what.fabric);
  const rma::topology machine = !what.levels.empty()
                                    ? rma::topology::balanced(rma::parse_levels(what.levels))
                                : it != nullptr   ? it->machine(procs)
                                : simulated(what) ? machine_on(*profile_of(what), procs)
                                                  : shm::discover(procs).machine;
  if (what.node_level == 0) return machine;
  if (what.node_level < 0 || what.node_level > machine.levels())
    throw refuse("--node-level", std::to_string(what.node_level),
                 fmt::format("1 to {}, the machine's levels", machine.levels()));
  std::vector<std::vector<int>> element_of;
  for (int level = 1; level <= machine.levels(); ++level) {
    element_of.emplace_back();
    for (rma::rank_t r = 0; r < procs; ++r)
      element_of.back().push_back(machine.element_of(r, level));
  }
  return rma::topology(std::move(element_of), what.node_level);
}

std::string levels_of(const rma::topology& machine) {
  std::string spec;
  for (int level = 1; level <= machine.levels(); ++level) {
    // How many children each element of the level has: elements of the next level, or ranks.
    const bool last = level == machine.levels();
    std::vector<int> parts(static_cast<std::size_t>(machine.elements(level)));
    const int below = last ? machine.ranks() : machine.elements(level + 1);
    for (int part = 0; part < below; ++part) {
      const rma::rank_t rank = last ? part : machine.leader(level + 1, part);
      ++parts[static_cast<std::size_t>(machine.element_of(rank, level))];
    }
    if (std::adjacent_find(parts.begin(), parts.end(), std::not_equal_to<>()) != parts.end())
      return "irregular";
    spec += fmt::format("{}{}", level == 1 ? "" : "x", parts.front());
  }
  return spec;
}

namespace {

/// The operations of the runs of workload primitive; one placeholder for every other workload.
std::vector<operation> operations_for(const request& what, workload load) {
  if (load != workload::primitive) return {operation::get};
  std::vector<operation> all;
  for (std::size_t i = 0; i < operations().size(); ++i)
    if (!what.operation || *what.operation == operations()[i])
      all.push_back(static_cast<operation>(i));
  return all;
}

/// The jobs of a request that sweeps nothing, or a parameter of locks.
std::vector<job> jobs_of_one(const request& what) {
  check_fabric(what);
  const workload load = chosen_workload(what);
  const std::vector<const lock_entry*> locks = chosen_locks(what, load);
  const auto profile = profile_of(what);
  check_procs(what, most_ranks_on(what, profile.get()));
  check_levels(what);
  if (profile != nullptr)
    for (const int procs : what.procs) check_room(what, *profile, machine_of(what, procs));
  check_amounts(what);
  check_parameters(what, locks);
  check_ranks_of_locks(what, locks);
  check_extras(what, load);
  check_server_load(what, load, profile.get());
  const double skew = what.skew.value_or(usual_skew);
  const std::shared_ptr<const zipf_law> popularity =
      load == workload::zipf ? std::make_shared<zipf_law>(locks_for(what, load, 1), skew) : nullptr;
  std::vector<job> jobs;
  for (const lock_entry* lock : locks)
    for (const auto& set : settings_for(what, *lock))
      for (const operation does : operations_for(what, load))
        for (const int procs : what.procs)
          jobs.push_back(
              {lock,
               {.what = load,
                .machine = machine_of(what, procs),
                .writers = what.writers,
                .by = what.by,
                .ops = what.ops,
                .seconds = what.seconds,
                .seed = what.seed,
                .set = set,
                .threads = what.threads,
                .pin = what.pin,
                .waiting = what.waiting,
                .trace = !what.trace.empty(),
                .warm_up = what.warm_up,
                .most_events = what.most_events,
                .far_witness = what.witness,
                .sample = what.sample.value_or(1),
                .locks = locks_for(what, load, procs),
                .locality = what.locality.value_or(1),
                .think_us = what.think_us.value_or(0),
                .call_us = what.call_us.value_or(0),
                .hold_us = what.hold_us.value_or(0),
                .skew = skew,
                .popularity = popularity,
                .server_busy = what.server_busy,
                .server_load = static_cast<std::uint32_t>(what.server_load.value_or(0)),
                .bytes = static_cast<std::uint32_t>(what.bytes.value_or(512)),
                .does = does,
                .flags_at = what.flags_at,
                .profile = profile,
                .nodes = nodes_for(what, profile.get(), machine_of(what, procs).nodes())}});
  return jobs;
}

}  // namespace

// Throws unless this machine has the memory for the simulated ranks.
void check_memory(const job& what) {
  if (what.plan.profile == nullptr) return;
  constexpr double gib = 1 << 30;
  const double needed = bytes_needed(what);
  const double available = bytes_available();
  if (needed > available)
    throw no_room(refuse("--procs", std::to_string(what.plan.machine.ranks()),
                         fmt::format("what fits into memory: {} needs about {:.1f} GiB, and "
                                     "{:.1f} GiB are free",
                                     what.lock->about.name, needed / gib, available / gib))
                      .what());
}

std::vector<job> jobs_of(const request& what) {
  std::vector<job> jobs;
  if (sweeps_a_setting(what)) {
    for (const double value : what.sweep_values)
      for (job& one : jobs_of_one(with_setting(what, value))) jobs.push_back(std::move(one));
  } else {
    jobs = jobs_of_one(what);
  }
  if (!what.trace.empty() && jobs.size() > 1)
    throw refuse(
        "--trace", what.trace,
        fmt::format("with one lock and one number of ranks; asked for {} runs", jobs.size()));
  return jobs;
}

void validate(const request& what) {
  for (const job& one : jobs_of(what)) check_memory(one);
}

}  // namespace lockflight::bench
