// The outcome of a search, for the program's JSON and for a profile.
#include <cmath>
#include <nlohmann/json.hpp>

#include "lab/tune/tune.hpp"

namespace lockflight::tune {
namespace {

using nlohmann::json;

json sample_json(const sample& of) {
  return {{"values", of.values}, {"median", of.median()}, {"spread", of.spread()}};
}

/// A setting that was measured at the end, with figures of its last run.
json last_json(const outcome& of, const setting& set, const sample& is) {
  json out = sample_json(is);
  const json& run = of.run_of(set);
  out["params"] = set;
  out["throughput_ops_s"] = run.at("throughput_ops_s");
  out["latency_us"] = run.at("latency_us");
  out["fairness_jain"] = run.at("fairness_jain");
  out["max_wait_us"] = run.at("max_wait_us");
  return out;
}

std::string text(const json& value) { return value.is_string() ? value.get<std::string>() : ""; }

}  // namespace

json to_json(const outcome& of) {
  json out;
  const json& run = of.run_of(of.start);
  for (const char* const field : {"lock", "kind", "fabric", "machine", "workload", "procs",
                                  "levels", "writers", "role", "locality", "threads"})
    out[field] = run.at(field);
  out["seed"] = of.asked.run.seed;
  out["objective"] = of.asked.aim.name;
  out["unit"] = of.asked.aim.unit;
  out["turns"] = of.asked.turns;
  out["runs"] = of.runs;
  out["finished"] = of.finished;
  out["parameters"] = json::array();
  for (const axis& along : of.axes)
    out["parameters"].push_back({{"name", along.name}, {"values", along.rungs}});
  out["tried"] = json::array();
  for (const attempt& a : of.attempts)
    out["tried"].push_back({{"parameter", a.moved},
                            {"value", a.value},
                            {"candidate", sample_json(a.candidate)},
                            {"best", sample_json(a.best)},
                            {"verdict", to_string(a.is)}});
  out["default"] = last_json(of, of.start, of.last.start);
  out["found"] = last_json(of, of.best, of.last.found);
  out["gained"] = of.last.gained;
  out["gain"] = of.gain();
  return out;
}

// A parameter that is not in it has its default, also if a later version changes that default.
profile::entry entry_of(const outcome& of) {
  const json& run = of.run_of(of.start);
  setting differs;
  for (const auto& [name, value] : of.chosen())
    for (const bench::lock_row& row : bench::lock_table())
      for (const catalogue::parameter_row& p : row.parameters)
        if (row.about.name == of.asked.run.locks.front() && p.name == name &&
            p.default_value != value)
          differs[name] = value;
  return {.found = {.fabric = text(run.at("fabric")),
                    .machine = text(run.at("machine")),
                    .levels = text(run.at("levels")),
                    .workload = text(run.at("workload")),
                    .objective = of.asked.aim.name,
                    .procs = run.at("procs").get<int>(),
                    .writers = run.at("writers").get<double>(),
                    .gain = std::round(1'000 * of.gain()) / 1'000},
          .parameters = differs};
}

}  // namespace lockflight::tune
