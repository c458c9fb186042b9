#include "lab/reproduce/beyond.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lab/bench/bench.hpp"
#include "lab/sim/machine.hpp"

namespace lockflight::reproduce {
namespace {

using nlohmann::json;

constexpr int most_ranks = 65'536;
constexpr const char* k_machine = "fx100";

/// The numbers of ranks: powers of four, and at last as many as the machine has and the lock can
/// distinguish.
std::vector<int> ranks_on(const std::string& machine, std::int64_t most_of_lock, bool quick) {
  if (quick) return {4, 16};
  const int most =
      static_cast<int>(std::min({sim::find_machine(machine).ranks(), std::uint64_t{most_ranks},
                                 static_cast<std::uint64_t>(most_of_lock)}));
  std::vector<int> all;
  for (int n = 1; n < most; n *= 4) all.push_back(n);
  all.push_back(most);
  return all;
}

bool runs_here(const bench::lock_row& row) {
  return !row.about.defers &&
         std::find(row.fabrics.begin(), row.fabrics.end(), "sim") != row.fabrics.end();
}

// No warm-up: it would be most of a run with many ranks, and the order of the first acquires is
// part of the result.
curve curve_of(const std::string& machine, const bench::lock_row& row, double writers, bool quick) {
  const std::string lock(row.about.name);
  const int least_ops = quick ? 500 : 10'000;
  // All ranks start at once. If writers are preferred, the first round is the writers and then the
  // readers; later rounds mix them.
  const int least_each = writers == 1 ? 1 : 4;
  curve made{machine, "sob", writers, lock, {}};
  for (const int procs : ranks_on(machine, row.most_ranks, quick))
    made.runs.push_back({{"machine", machine},
                         {"workload", made.workload},
                         {"lock", lock},
                         {"procs", procs},
                         {"writers", writers},
                         {"ops", std::max(least_each, (least_ops + procs - 1) / procs) * procs},
                         {"warm_up", false},
                         {"most_events", most_events_of_a_point},
                         {"most_bytes", most_bytes_of_a_point}});
  return made;
}

/// The FX100 paper's run, as its claim has it.
curve k_computer() {
  for (const paper& p : find_papers("fx100"))
    for (const claim& c : p.claims)
      if (c.id == "k-computer" && c.how) {
        const run& r = c.how->of.numerator;
        return {k_machine, r.at("workload"), r.at("writers"), r.at("lock"), {r}};
      }
  throw std::logic_error("the claims of fx100 have no k-computer");
}

}  // namespace

bool is_k_computer(const curve& c) { return c.runs.front().contains("levels"); }

std::vector<curve> curves_beyond(bool quick) {
  std::vector<curve> all;
  for (const std::string& machine : sim::names_of_machines())
    for (const double writers : {1.0, few_writers})
      for (const bench::lock_row& row : bench::lock_table())
        if (runs_here(row) && (writers == 1 || row.about.what == lock::kind::rw))
          all.push_back(curve_of(machine, row, writers, quick));
  if (!quick) all.push_back(k_computer());
  return all;
}

std::string said_of_writers(double writers) {
  return writers == 1 ? "all write" : fmt::format("{:g} % write", 100 * writers);
}

const json* point_at(const measured_curve& c, int procs) {
  const auto at = std::find_if(c.points.begin(), c.points.end(),
                               [&](const json& point) { return point.at("procs") == procs; });
  return at == c.points.end() ? nullptr : &*at;
}

std::string fastest::said() const {
  std::string text;
  for (const stretch& s : locks) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", s.lock, s.from);
    if (s.to != s.from) text += fmt::format(" to {}", s.to);
  }
  return text;
}

std::vector<fastest> fastest_of(const std::vector<measured_curve>& curves) {
  std::vector<fastest> all;
  std::vector<std::vector<const measured_curve*>> rivals;
  for (const measured_curve& c : curves) {
    if (is_k_computer(c.of)) continue;
    if (all.empty() || all.back().machine != c.of.machine || all.back().writers != c.of.writers) {
      all.push_back({.machine = c.of.machine, .writers = c.of.writers, .locks = {}});
      rivals.emplace_back();
    }
    rivals.back().push_back(&c);
  }
  for (std::size_t i = 0; i < all.size(); ++i)
    for (const run& what : rivals[i].front()->of.runs) {
      const int procs = what.at("procs");
      const measured_curve* best = nullptr;
      double most = 0;
      double least = 0;
      for (const measured_curve* const c : rivals[i]) {
        const json* const point = point_at(*c, procs);
        if (point == nullptr) continue;
        const double here = point->at("throughput_ops_s");
        if (best == nullptr || here < least) least = here;
        if (best == nullptr || here > most) {
          best = c;
          most = here;
        }
      }
      if (best == nullptr) continue;
      fastest& f = all[i];
      if (f.locks.empty() || f.locks.back().lock != best->of.lock)
        f.locks.push_back({best->of.lock, procs, procs});
      f.locks.back().to = procs;
      f.most = procs;
      f.ops_s_at_most = most;
      f.times_slowest = least > 0 ? most / least : 0;
    }
  return all;
}

std::vector<std::string> ends_of(const std::vector<measured_curve>& curves,
                                 const std::string& machine, double writers, bool with_reason) {
  std::vector<std::string> all;
  for (const measured_curve& c : curves)
    if (c.of.machine == machine && c.of.writers == writers && !c.ends.empty() &&
        !is_k_computer(c.of))
      all.push_back(fmt::format("{} {}{}", c.of.lock, c.ends_at(),
                                with_reason ? fmt::format(" ({})", c.ends) : ""));
  return all;
}

std::string most_of_a_point() {
  return fmt::format("{} million events of the simulator or {} GiB",
                     most_events_of_a_point / 1'000'000, most_bytes_of_a_point >> 30);
}

std::string said_of_k_computer(const std::vector<measured_curve>& curves) {
  for (const measured_curve& c : curves) {
    if (!is_k_computer(c.of)) continue;
    if (c.points.empty()) return fmt::format("The whole K computer was not run: {}", c.ends);
    const json& r = c.points.front();
    const double rounds = r.at("ops").get<double>() / r.at("procs").get<double>();
    return fmt::format(
        "The whole K computer: {} ranks each lock_all and unlock_all with {} in "
        "{:.3g} s.",
        r.at("procs").get<int>(), c.of.lock, r.at("elapsed_s").get<double>() / rounds);
  }
  return "";
}

json rows_of(const std::vector<measured_curve>& curves) {
  json all = json::array();
  for (const measured_curve& c : curves) {
    const json which{{"machine", c.of.machine},
                     {"workload", c.of.workload},
                     {"writers", c.of.writers},
                     {"lock", c.of.lock}};
    for (const json& point : c.points) {
      json row = which;
      for (const char* const key : {"procs", "levels", "ops", "elapsed_s", "throughput_ops_s",
                                    "latency_us", "fairness_jain", "violations"})
        row[key] = point.at(key);
      all.push_back(std::move(row));
    }
    if (c.ends.empty()) continue;
    json row = which;
    row["procs"] = c.ends_at();
    row["throughput_ops_s"] = row["latency_us"] = nullptr;
    row["why"] = c.ends;
    all.push_back(std::move(row));
  }
  return all;
}

}  // namespace lockflight::reproduce
