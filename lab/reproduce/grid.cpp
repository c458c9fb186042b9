#include "lab/reproduce/grid.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/median.hpp"
#include "lab/bench/bench.hpp"
#include "lab/reproduce/beyond.hpp"
#include "lab/reproduce/pool.hpp"
#include "lab/sim/machine.hpp"

namespace lockflight::reproduce {
namespace {

using nlohmann::json;

constexpr const char* our_mutex = "flight";
constexpr const char* our_rw = "flight-rw";

std::vector<std::string> locks_of(lock::kind what) {
  std::vector<std::string> names;
  for (const bench::lock_row& row : bench::lock_table())
    if (row.about.what == what && !row.about.defers &&
        std::find(row.fabrics.begin(), row.fabrics.end(), "sim") != row.fabrics.end())
      names.emplace_back(row.about.name);
  return names;
}

std::vector<std::string> without(std::vector<std::string> names, std::string_view which) {
  std::erase(names, which);
  return names;
}

// A reader-writer lock competes with mutexes, ours too, if all operations write.
void add_contests(std::vector<contest>& to, const grid_cell& in, double bound) {
  static const std::vector<std::string> mutexes = locks_of(lock::kind::mutex);
  static const std::vector<std::string> rw = locks_of(lock::kind::rw);
  if (in.writers == 1) {
    to.push_back({in, our_mutex, without(mutexes, our_mutex), bound});
    to.push_back({in, our_rw, mutexes, bound});
  } else {
    to.push_back({in, our_rw, without(rw, our_rw), bound});
  }
}

struct extent {
  std::vector<int> procs;
  std::vector<double> writers;
  std::vector<int> locks;
  std::vector<double> localities;
};

extent extent_of(bool quick) {
  if (quick) return {{16, 256}, {few_writers, 1}, {1, 100}, {0.9}};
  return {ranks_of_grid(), {0, few_writers, 0.02, 0.05, 0.3, 1}, {1, 100, 1000}, {0.5, 0.9, 1}};
}

bool chosen(const auto& wanted, const auto& one) {
  return wanted.empty() || std::find(wanted.begin(), wanted.end(), one) != wanted.end();
}

/// The fault that a run reports, or nothing.
std::string wrong_with(const result& r) {
  if (!r.failed.empty()) return r.failed;
  return r.run.at("violations") != 0 ? "broke mutual exclusion" : "";
}

}  // namespace

const std::vector<int>& ranks_of_grid() {
  static const std::vector<int> all{16, 64, 256, 1024};
  return all;
}

std::vector<contest> contests_of_grid(const grid_choice& which) {
  const extent all = extent_of(which.quick);
  std::vector<contest> contests;
  for (const std::string& machine : sim::names_of_machines()) {
    if (!chosen(which.machines, machine)) continue;
    const sim::machine_profile profile = sim::find_machine(machine);
    for (const int procs : which.procs.empty() ? all.procs : which.procs) {
      if (static_cast<std::uint64_t>(procs) > profile.ranks()) continue;
      const bool one_node = procs <= static_cast<int>(profile.cores);
      for (const int locks : which.locks.empty() ? all.locks : which.locks)
        for (const double locality : locks == 1 || one_node ? std::vector{1.0} : all.localities)
          for (const double writers : which.writers ? std::vector{*which.writers} : all.writers)
            add_contests(contests, {machine, procs, writers, locks, locality}, which.below);
    }
  }
  return contests;
}

run run_in(const grid_cell& in, const std::string& lock, grid_length length) {
  // About forty operations write if one in five hundred does. Each lock is taken fifty times, so
  // that the state which its first acquires find counts for less.
  const int least_ops = length.quick ? 10'000 : std::max(20'000, 50 * in.locks);
  constexpr int least_each = 20;
  run made{{"machine", in.machine},
           {"lock", lock},
           {"procs", in.procs},
           {"writers", in.writers},
           {"ops", std::int64_t{length.times} * in.procs *
                       std::max(least_each, (least_ops + in.procs - 1) / in.procs)},
           {"warm_up", false},
           {"most_events", static_cast<std::uint64_t>(length.times) * most_events_of_a_point},
           {"most_bytes", most_bytes_of_a_point}};
  if (in.locks == 1) {
    made["workload"] = "ecsb";
  } else {
    made["workload"] = "table";
    made["locks"] = in.locks;
    made["locality"] = in.locality;
  }
  return made;
}

std::vector<grid_outcome> carry_out_grid(const std::vector<contest>& contests, grid_length length,
                                         const how& way) {
  std::vector<series> wanted;
  std::set<std::pair<grid_cell, std::string>> seen;
  const auto want = [&](const grid_cell& in, const std::string& lock) {
    if (!seen.emplace(in, lock).second) return;
    const std::string name = fmt::format("{} on {}, {} ranks", lock, in.machine, in.procs);
    wanted.push_back({name, name, {run_in(in, lock, length)}});
  };
  for (const contest& c : contests) {
    want(c.in, c.lock);
    for (const std::string& rival : c.rivals) want(c.in, rival);
  }
  const std::map<std::string, result> results = carry_out_runs({}, wanted, way);

  std::vector<grid_outcome> all;
  for (const contest& c : contests) {
    const auto result_of = [&](const std::string& lock) -> const result& {
      return results.at(key_of(run_in(c.in, lock, length)));
    };
    const auto throughput = [](const result& r) {
      return r.run.at("throughput_ops_s").get<double>();
    };
    grid_outcome out{.of = c, .ops_s = std::nullopt, .best = "", .why = ""};
    const result& ours = result_of(c.lock);
    out.why = wrong_with(ours);
    if (out.why.empty()) out.ops_s = throughput(ours);
    for (const std::string& rival : c.rivals) {
      const result& got = result_of(rival);
      if (std::string fault = wrong_with(got); !fault.empty()) {
        out.unfinished.emplace(rival, std::move(fault));
        continue;
      }
      const double its = out.others_ops_s[rival] = throughput(got);
      if (its > out.best_ops_s) {
        out.best = rival;
        out.best_ops_s = its;
      }
    }
    all.push_back(std::move(out));
  }
  return all;
}

std::string said_of_locks(const grid_cell& in) {
  if (in.locks == 1) return "1 lock";
  return fmt::format("{} locks, {:g} % local", in.locks, 100 * in.locality);
}

std::vector<grid_median> medians_of(const std::vector<grid_outcome>& all) {
  std::vector<grid_median> medians;
  std::vector<std::vector<double>> ratios;
  const auto count = [&](const std::string& machine, const grid_outcome& o) {
    const auto is_its = [&](const grid_median& m) {
      return m.machine == machine && m.writers == o.of.in.writers && m.lock == o.of.lock;
    };
    auto at = std::find_if(medians.begin(), medians.end(), is_its);
    if (at == medians.end()) {
      ratios.emplace_back();
      at = medians.insert(at, {.machine = machine, .writers = o.of.in.writers, .lock = o.of.lock});
    }
    at->falls_short += o.falls_short() ? 1 : 0;
    if (!o.best.empty())
      ratios[static_cast<std::size_t>(at - medians.begin())].push_back(o.ratio());
  };
  for (const grid_outcome& o : all) count(o.of.in.machine, o);
  for (const grid_outcome& o : all) count("", o);
  for (std::size_t i = 0; i < medians.size(); ++i) {
    medians[i].cells = static_cast<int>(ratios[i].size());
    medians[i].median = median_of(ratios[i]);
    if (!ratios[i].empty())
      medians[i].least = *std::min_element(ratios[i].begin(), ratios[i].end());
  }
  return medians;
}

json to_json(const std::vector<grid_outcome>& all) {
  json rows = json::array();
  for (const grid_outcome& o : all) {
    const grid_cell& in = o.of.in;
    json row{{"machine", in.machine},
             {"procs", in.procs},
             {"writers", in.writers},
             {"locks", in.locks},
             {"locality", in.locks == 1 ? json(nullptr) : json(in.locality)},
             {"lock", o.of.lock},
             {"throughput_ops_s", o.ops_s ? json(*o.ops_s) : json(nullptr)},
             {"best_other", o.best.empty() ? json(nullptr) : json(o.best)},
             {"best_other_ops_s", o.best.empty() ? json(nullptr) : json(o.best_ops_s)},
             {"ratio", o.ops_s && !o.best.empty() ? json(o.ratio()) : json(nullptr)},
             {"bound", o.of.bound},
             {"falls_short", o.falls_short()},
             {"others_ops_s", o.others_ops_s},
             {"unfinished", o.unfinished}};
    if (!o.why.empty()) row["why"] = o.why;
    rows.push_back(std::move(row));
  }
  json medians = json::array();
  for (const grid_median& m : medians_of(all))
    medians.push_back({{"machine", m.machine.empty() ? json(nullptr) : json(m.machine)},
                       {"writers", m.writers},
                       {"lock", m.lock},
                       {"cells", m.cells},
                       {"falls_short", m.falls_short},
                       {"median", m.cells > 0 ? json(m.median) : json(nullptr)},
                       {"least", m.cells > 0 ? json(m.least) : json(nullptr)}});
  return {{"grid", std::move(rows)}, {"medians", std::move(medians)}};
}

}  // namespace lockflight::reproduce
