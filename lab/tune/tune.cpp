#include "lab/tune/tune.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "lab/bench/plan/launch.hpp"

namespace lockflight::tune {
namespace {

using nlohmann::json;

double number(const json& value) {
  return value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
}

const bench::lock_row& row_of(const std::string& lock) {
  for (const bench::lock_row& row : bench::lock_table())
    if (row.about.name == lock) return row;
  // The benchmark also simulates locks as their papers print them.
  throw bench::bad_request(
      fmt::format("--lock '{}' (accepted: a lock that 'lockflight locks' lists)", lock));
}

bench::request with(const bench::request& run, const setting& set, std::uint64_t more_seed) {
  bench::request made = run;
  made.set = set;
  made.seed += more_seed;
  return made;
}

/// Empty if the benchmark accepts the run, else the reason why not.
std::string refusal_of(const bench::request& run) {
  try {
    bench::validate(run);
  } catch (const bench::bad_request& e) {
    return e.what();
  }
  return "";
}

axis axis_of(const catalogue::parameter_row& row, const parameter_request* asked,
             const std::string& lock) {
  if (asked == nullptr || asked->values.empty())
    return {std::string(row.name), ladder(row.min, row.max, row.default_value)};
  std::vector<std::int64_t> rungs = asked->values;
  for (const std::int64_t value : rungs)
    if (!row.takes(value))
      throw bench::bad_request(fmt::format("--parameter '{}={}' (accepted: {} for {})", row.name,
                                           value, row.range(), lock));
  rungs.push_back(row.default_value);
  std::sort(rungs.begin(), rungs.end());
  rungs.erase(std::unique(rungs.begin(), rungs.end()), rungs.end());
  return {std::string(row.name), rungs};
}

void check_parameter_requests(const request& what, const bench::lock_row& lock) {
  std::vector<std::string> known;
  for (const catalogue::parameter_row& row : lock.parameters) known.emplace_back(row.name);
  for (const parameter_request& asked : what.parameters) {
    if (what.run.set.contains(asked.name))
      throw bench::bad_request(fmt::format(
          "--parameter '{}' (accepted: a parameter that --set does not give)", asked.name));
    if (catalogue::find(lock.parameters, asked.name) != nullptr) continue;
    throw bench::bad_request(
        fmt::format("--parameter '{}' {}", asked.name, catalogue::why_unknown(asked.name, known)));
  }
}

/// The parameters to tune: those that were asked for, or all that are not held fixed and have a
/// meaning on this machine.
std::vector<axis> axes_of(const request& what, const bench::lock_row& lock) {
  check_parameter_requests(what, lock);
  std::vector<axis> axes;
  for (const catalogue::parameter_row& row : lock.parameters) {
    const std::string name(row.name);
    if (what.run.set.contains(name)) continue;
    const auto asked = std::find_if(what.parameters.begin(), what.parameters.end(),
                                    [&](const parameter_request& w) { return w.name == name; });
    const bool is_asked = asked != what.parameters.end();
    if (!what.parameters.empty() && !is_asked) continue;
    setting alone = what.run.set;
    alone[name] = row.default_value;
    const std::string refused = refusal_of(with(what.run, alone, 0));
    if (!refused.empty() && is_asked) throw bench::bad_request(refused);
    if (refused.empty())
      axes.push_back(axis_of(row, is_asked ? &*asked : nullptr, std::string(lock.about.name)));
  }
  if (axes.empty())
    throw bench::bad_request(
        fmt::format("--lock '{}' (accepted: a lock with parameters to tune; {} has none here that "
                    "--set does not give)",
                    lock.about.name, lock.about.name));
  return axes;
}

setting start_of(const request& what, const std::vector<axis>& axes, const bench::lock_row& lock) {
  setting start = what.run.set;
  for (const catalogue::parameter_row& row : lock.parameters)
    if (std::any_of(axes.begin(), axes.end(), [&](const axis& a) { return a.name == row.name; }))
      start[std::string(row.name)] = row.default_value;
  return start;
}

/// Measures by runs of the benchmark. In a launch each process has rank 0's numbers.
class bench_runs {
 public:
  bench_runs(const request& what, const std::function<void(const progress&)>& watch)
      : what_(what),
        watch_(watch),
        launched_(bench::launch_of(what.run.fabric)),
        began_(std::chrono::steady_clock::now()) {}

  void trying(const std::string& text) { now_.trying = text; }

  double once(const setting& set, unsigned turn) {
    now_.fraction = 0;
    const json result =
        bench::run(with(what_.run, set, turn), [&](const bench::progress& p) { tell(p.fraction); });
    const json& runs = result.at("runs");
    double value = std::numeric_limits<double>::quiet_NaN();
    bool is_sound = true;
    if (!runs.empty()) {
      is_sound = runs.front().at("violations") == 0;
      value = what_.aim.of(runs.front());
      if (is_last_) last_[set] = runs.front();
    }
    ++now_.runs;
    if (launched_ != nullptr) {
      is_sound = launched_->all(is_sound);
      value = launched_->first(value);
    }
    if (!is_sound) throw broken(fmt::format("mutual exclusion was broken with {}", all_of(set)));
    if (std::isnan(value))
      throw bench::bad_request(
          fmt::format("--objective '{}' (accepted: one that these runs have; they have none, or "
                      "are too short for one operation)",
                      what_.aim.name));
    return value;
  }

  [[nodiscard]] double seconds() {
    const double mine =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
    return launched_ != nullptr ? launched_->first(mine) : mine;
  }

  /// From now on runs are stored.
  void keep() {
    now_.trying.clear();
    is_last_ = true;
  }
  [[nodiscard]] const std::map<setting, json>& last() const { return last_; }

 private:
  void tell(double fraction) {
    now_.fraction = fraction;
    if (watch_) watch_(now_);
  }

  static std::string all_of(const setting& set) {
    std::vector<std::string> all;
    for (const auto& [name, value] : set) all.push_back(fmt::format("{}={}", name, value));
    return fmt::format("{}", fmt::join(all, " "));
  }

  const request& what_;
  const std::function<void(const progress&)>& watch_;
  bench::launch* launched_;
  std::chrono::steady_clock::time_point began_;
  progress now_;
  bool is_last_ = false;
  std::map<setting, json> last_;
};

}  // namespace

const std::vector<objective>& objectives() {
  static const std::vector<objective> all{
      {"throughput", "operations a second", "ops/s", false,
       [](const json& run) { return number(run.at("throughput_ops_s")); }},
      {"latency", "the mean of an acquire and its release", "us", true,
       [](const json& run) { return number(run.at("latency_us").at("mean")); }},
      {"p99", "the 99th percentile of an acquire and its release", "us", true,
       [](const json& run) { return number(run.at("latency_us").at("p99")); }},
      {"fairness", "Jain's index of the ranks' throughputs", "", false,
       [](const json& run) { return number(run.at("fairness_jain")); }},
  };
  return all;
}

double outcome::gain() const {
  if (!last.gained) return 1;
  const double a = last.found.median();
  const double b = last.start.median();
  const bool less = asked.aim.less_is_better;
  const double below = less ? a : b;
  return below == 0 ? 1 : (less ? b : a) / below;
}

void validate(const request& what) {
  bench::validate(what.run);
  static_cast<void>(axes_of(what, row_of(what.run.locks.front())));
}

outcome tune(const request& what, const std::function<void(const progress&)>& watch) {
  bench::validate(what.run);
  const bench::lock_row& lock = row_of(what.run.locks.front());
  outcome made{.asked = what,
               .axes = axes_of(what, lock),
               .start = {},
               .best = {},
               .finished = true,
               .attempts = {},
               .last = {},
               .runs = 0,
               .last_runs = {}};
  made.start = start_of(what, made.axes, lock);
  bench_runs runs(what, watch);
  contest held(
      {.turns = what.turns,
       .exact = what.run.fabric == "sim",
       .less_is_better = what.aim.less_is_better,
       .most = what.most},
      [&](const setting& set, unsigned turn) { return runs.once(set, turn); },
      [&] { return runs.seconds(); });
  const found top = climb(made.axes, made.start,
                          [&](const setting& candidate, const setting& best,
                              const std::string& moved) -> std::optional<verdict> {
                            // Values that depend on each other, or on the machine.
                            if (!refusal_of(with(what.run, candidate, 0)).empty())
                              return verdict::worse;
                            runs.trying(fmt::format("{}={}", moved, candidate.at(moved)));
                            return held.hold(candidate, best, moved);
                          });
  runs.keep();
  made.best = top.best;
  made.finished = top.finished;
  made.last = held.decide(made.start, made.best);
  made.attempts = held.attempts();
  made.runs = held.runs();
  made.last_runs = runs.last();
  return made;
}

}  // namespace lockflight::tune
