// From a run in the terms of claim files to a request to the benchmark.
#include "reproduce/reproduce.hpp"

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
  take(what, "ops", r.ops);
  take(what, "seconds", r.seconds);
  if (const auto set = what.find("set"); set != what.end())
    for (const auto& [name, value] : set->items()) r.set[name] = value.get<std::int64_t>();
  take(what, "locks", r.table_size);
  take(what, "locality", r.locality);
  take(what, "hold_us", r.hold_us);
  take(what, "bytes", r.bytes);
  take(what, "server_busy", r.server_busy);
  take(what, "server_load", r.server_load);
  take(what, "operation", r.operation);
  // Not of claim files:
  take(what, "warm_up", r.warm_up);
  take(what, "most_events", r.most_events);
  return r;
}

// Pairs of numerator and denominator one after the other, or numerators alone.
std::vector<run> runs_of(const claim& c) {
  std::vector<run> all;
  if (!c.how) return all;
  const measure& m = *c.how;
  const auto add = [&](const run* part) {
    const bool above = part != nullptr && m.sweep_of != measure::side::denominator;
    const bool below = part != nullptr && m.sweep_of != measure::side::numerator;
    all.push_back(above ? laid_over(m.numerator, *part) : m.numerator);
    if (m.denominator) all.push_back(below ? laid_over(*m.denominator, *part) : *m.denominator);
  };
  if (m.sweep.empty()) add(nullptr);
  for (const run& part : m.sweep) add(&part);
  return all;
}

}  // namespace lockflight::reproduce
