// From a run in the terms of claim files to a request to the benchmark.
#include "lab/reproduce/runs.hpp"

#include "lab/reproduce/judge.hpp"

namespace lockflight::reproduce {
namespace {

using nlohmann::json;

template <class T>
void take(const json& from, const char* key, T& to) {
  if (const auto at = from.find(key); at != from.end()) to = at->get<T>();
}

template <class T>
void take(const json& from, const char* key, std::optional<T>& to) {
  if (const auto at = from.find(key); at != from.end()) to = at->get<T>();
}

run laid_over(run whole, const run& part) {
  whole.update(part);
  return whole;
}

}  // namespace

bench::request request_of(const run& what) {
  bench::request r;
  r.fabric = "sim";
  r.locks = {what.contains("lock") ? what.at("lock").get<std::string>() : "all"};
  take(what, "workload", r.workload);
  take(what, "machine", r.profile);
  if (const auto set = what.find("machine_set"); set != what.end())
    for (const auto& [name, value] : set->items()) r.machine_set[name] = value.get<double>();
  r.procs = {what.at("procs").get<int>()};
  take(what, "levels", r.levels);
  take(what, "nodes", r.nodes);
  take(what, "writers", r.writers);
  if (what.value("role", "operation") == "process") r.by = bench::role::process;
  take(what, "ops", r.ops);
  take(what, "seconds", r.seconds);
  if (const auto set = what.find("set"); set != what.end())
    for (const auto& [name, value] : set->items()) r.set[name] = value.get<std::int64_t>();
  take(what, "locks", r.table_size);
  take(what, "locality", r.locality);
  take(what, "think_us", r.think_us);
  take(what, "call_us", r.call_us);
  take(what, "hold_us", r.hold_us);
  take(what, "skew", r.skew);
  take(what, "bytes", r.bytes);
  take(what, "server_busy", r.server_busy);
  take(what, "server_load", r.server_load);
  take(what, "operation", r.operation);
  take(what, "flags_at", r.flags_at);
  take(what, "warm_up", r.warm_up);
  // Not of claim files:
  take(what, "seed", r.seed);
  take(what, "most_events", r.most_events);
  return r;
}

std::vector<pair_of_runs> pairs_of(const quotient& q, std::uint64_t seed) {
  std::vector<pair_of_runs> all;
  const auto seeded = [&](run what) {
    if (seed != seeds[0]) what["seed"] = seed;
    return what;
  };
  const auto add = [&](const run* part) {
    const bool above = part != nullptr && q.sweep_of != quotient::side::denominator;
    const bool below = part != nullptr && q.sweep_of != quotient::side::numerator;
    pair_of_runs made{seeded(above ? laid_over(q.numerator, *part) : q.numerator), std::nullopt,
                      std::nullopt};
    if (q.denominator)
      made.denominator = seeded(below ? laid_over(*q.denominator, *part) : *q.denominator);
    if (q.less) made.less = seeded(*q.less);
    all.push_back(std::move(made));
  };
  if (q.sweep.empty()) add(nullptr);
  for (const run& part : q.sweep) add(&part);
  return all;
}

std::vector<run> runs_of(const claim& c) {
  std::vector<run> all;
  if (!c.how) return all;
  const auto add = [&](const quotient& q, std::uint64_t seed) {
    for (pair_of_runs& pair : pairs_of(q, seed)) {
      all.push_back(std::move(pair.numerator));
      if (pair.denominator) all.push_back(*std::move(pair.denominator));
      if (pair.less) all.push_back(*std::move(pair.less));
    }
  };
  for (const std::uint64_t seed : seeds_of(c.how_close)) {
    add(c.how->of, seed);
    if (c.how->relative_to) add(*c.how->relative_to, seed);
  }
  return all;
}

}  // namespace lockflight::reproduce
