#include "lab/reproduce/metric.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace lockflight::reproduce {
namespace {

using nlohmann::json;
using number = std::optional<double>;

enum class dimension : std::uint8_t { time, operations, messages, rate, none };

struct row {
  std::string_view name;
  dimension is;
  number (*of)(const json& run, bool divides);
};

number field(const json& in, const char* name) {
  const auto at = in.find(name);
  return at == in.end() || !at->is_number() ? std::nullopt : number(at->get<double>());
}

number latency(const json& run, const char* which) {
  const json& all = run.at("latency_us");
  if (all.is_null()) return std::nullopt;
  const number us = field(all, which);
  return us ? number(*us * 1e-6) : std::nullopt;
}

number of_ranks(const json& run, const char* which) {
  const auto at = run.find("rank_latency_us");
  const number us = at == run.end() ? std::nullopt : field(*at, which);
  return us ? number(*us * 1e-6) : std::nullopt;
}

number mean_of(const json& run, const char* role) { return latency(run.at(role), "mean"); }

number seconds_of(const json& run, const char* us_field) {
  const number us = field(run, us_field);
  return us ? number(*us * 1e-6) : std::nullopt;
}

number divided(number a, number b) {
  if (!a || !b || *b == 0) return std::nullopt;
  return *a / *b;
}

number interquartile_range(const json& run) {
  const number p75 = latency(run, "p75");
  const number p25 = latency(run, "p25");
  return p75 && p25 ? number(*p75 - *p25) : std::nullopt;
}

number elapsed_per_round(const json& run, bool /*divides*/) {
  const number rounds = divided(field(run, "ops"), field(run, "procs"));
  return divided(field(run, "elapsed_s"), rounds);
}

number per_rank(const json& run, bool /*divides*/) {
  return divided(latency(run, "mean"), field(run, "procs"));
}

number network_operations(const json& run, bool /*divides*/) {
  const json& nic = run.at("fabric_ops").at("nic");
  double sum = 0;  // flushes wait for operations but are not operations
  for (const char* const one : {"put", "get", "add", "fetch_add", "swap", "cas"})
    sum += nic.at(one).get<double>();
  return divided(sum, field(run, "ops"));
}

number atomics(const json& run, bool /*divides*/) {
  const json& nic = run.at("fabric_ops").at("nic");
  double sum = 0;
  for (const char* const one : {"add", "fetch_add", "swap", "cas"})
    sum += nic.at(one).get<double>();
  return divided(sum, field(run, "ops"));
}

number swaps(const json& run, const char* which) {
  const auto at = run.find("compare_swaps");
  return at == run.end() ? std::nullopt : field(*at, which);
}

number of_server(const json& run, const char* which) {
  const auto at = run.find("server");
  return at == run.end() ? std::nullopt : field(*at, which);
}

number messages(const json& run, bool /*divides*/) {
  return divided(field(run.at("fabric_ops"), "messages"), field(run, "ops"));
}

number rank_quotient(const json& run, const char* a, const char* b) {
  const json& of = run.at("rank_elapsed_s");
  return divided(field(of, a), field(of, b));
}

constexpr std::string_view p75_by_p25 = "p75 / p25";

constexpr row rows[] = {
    {"throughput", dimension::rate,
     [](const json& r, bool) { return field(r, "throughput_ops_s"); }},
    {"mean latency", dimension::time, [](const json& r, bool) { return latency(r, "mean"); }},
    {"p25", dimension::time, [](const json& r, bool) { return latency(r, "p25"); }},
    {"p50", dimension::time, [](const json& r, bool) { return latency(r, "p50"); }},
    {"p75", dimension::time, [](const json& r, bool) { return latency(r, "p75"); }},
    {"p99", dimension::time, [](const json& r, bool) { return latency(r, "p99"); }},
    {"standard deviation", dimension::time,
     [](const json& r, bool) { return latency(r, "deviation"); }},
    {"standard deviation / mean", dimension::none,
     [](const json& r, bool) { return divided(latency(r, "deviation"), latency(r, "mean")); }},
    {"p75 - p25", dimension::time, [](const json& r, bool) { return interquartile_range(r); }},
    {"(p75 - p25) / p50", dimension::none,
     [](const json& r, bool) { return divided(interquartile_range(r), latency(r, "p50")); }},
    {"p25 of the ranks' means", dimension::time,
     [](const json& r, bool) { return of_ranks(r, "p25"); }},
    {"p50 of the ranks' means", dimension::time,
     [](const json& r, bool) { return of_ranks(r, "p50"); }},
    {"p75 of the ranks' means", dimension::time,
     [](const json& r, bool) { return of_ranks(r, "p75"); }},
    {"p99 of the ranks' means", dimension::time,
     [](const json& r, bool) { return of_ranks(r, "p99"); }},
    {"max of the ranks' means", dimension::time,
     [](const json& r, bool) { return of_ranks(r, "max"); }},
    {"mean of the ranks' means", dimension::time,
     [](const json& r, bool) { return of_ranks(r, "mean"); }},
    {"mean latency of reads", dimension::time,
     [](const json& r, bool) { return mean_of(r, "read"); }},
    {"mean latency of writes", dimension::time,
     [](const json& r, bool) { return mean_of(r, "write"); }},
    {"mean latency of remote operations", dimension::time,
     [](const json& r, bool) {
       return r.contains("remote") ? mean_of(r, "remote") : std::nullopt;
     }},
    {"mean latency of writes / of reads", dimension::none,
     [](const json& r, bool) { return divided(mean_of(r, "write"), mean_of(r, "read")); }},
    {"longest wait", dimension::time,
     [](const json& r, bool) { return seconds_of(r, "max_wait_us"); }},
    {"mean acquire", dimension::time,
     [](const json& r, bool) { return seconds_of(r, "acquire_us"); }},
    {"mean release", dimension::time,
     [](const json& r, bool) { return seconds_of(r, "release_us"); }},
    {"mean acquire / mean release", dimension::none,
     [](const json& r, bool) { return divided(field(r, "acquire_us"), field(r, "release_us")); }},
    {"standard deviation of acquires", dimension::time,
     [](const json& r, bool) { return seconds_of(r, "acquire_sd_us"); }},
    {"standard deviation of releases", dimension::time,
     [](const json& r, bool) { return seconds_of(r, "release_sd_us"); }},
    {"elapsed", dimension::time, [](const json& r, bool) { return field(r, "elapsed_s"); }},
    {"elapsed per round", dimension::time, elapsed_per_round},
    {"mean latency per rank", dimension::time, per_rank},
    {"network operations per operation", dimension::operations, network_operations},
    {"compare-and-swaps per operation", dimension::operations,
     [](const json& r, bool) {
       return divided(field(r.at("fabric_ops").at("nic"), "cas"), field(r, "ops"));
     }},
    {"atomics per operation", dimension::operations, atomics},
    {"failed compare-and-swaps per operation", dimension::operations,
     [](const json& r, bool) { return divided(swaps(r, "failed"), field(r, "ops")); }},
    {"failed compare-and-swaps / compare-and-swaps", dimension::none,
     [](const json& r, bool) { return divided(swaps(r, "failed"), swaps(r, "posted")); }},
    {"compare-and-swaps per rank and second", dimension::rate,
     [](const json& r, bool) {
       return divided(divided(swaps(r, "posted"), field(r, "procs")), field(r, "elapsed_s"));
     }},
    {"most network operations of a release", dimension::operations,
     [](const json& r, bool) { return field(r, "release_network_ops_max"); }},
    {"messages per operation", dimension::messages, messages},
    {"server's processor", dimension::none,
     [](const json& r, bool) { return of_server(r, "on_messages"); }},
    {"server's card", dimension::none,
     [](const json& r, bool) { return of_server(r, "on_atomics"); }},
    {p75_by_p25, dimension::time,
     [](const json& r, bool divides) { return latency(r, divides ? "p25" : "p75"); }},
    {"slowest rank / fastest rank", dimension::none,
     [](const json& r, bool) { return rank_quotient(r, "slowest", "fastest"); }},
    {"mean time of the farthest quarter of ranks / nearest quarter", dimension::none,
     [](const json& r, bool) { return rank_quotient(r, "far", "near"); }},
};

struct distribution {
  std::string_view name;
  const char* field;  ///< of the benchmark's JSON
};
constexpr distribution distributions[] = {
    {"distribution of latencies", "latency_cdf"},
    {"distribution of the ranks' means", "rank_latency_cdf"},
};

const row& row_of(std::string_view metric) {
  const auto* const at = std::find_if(std::begin(rows), std::end(rows),
                                      [&](const row& r) { return r.name == metric; });
  if (at == std::end(rows)) throw std::logic_error("no such metric: " + std::string(metric));
  return *at;
}

}  // namespace

std::vector<std::string> names_of_metrics() {
  std::vector<std::string> names;
  for (const row& r : rows) names.emplace_back(r.name);
  return names;
}

bool is_quotient(std::string_view metric) { return row_of(metric).is == dimension::none; }

bool fits(std::string_view metric, std::string_view unit) {
  switch (row_of(metric).is) {
    case dimension::time:
      return unit == "us" || unit == "ms" || unit == "s";
    case dimension::operations:
      return unit == "operations";
    case dimension::messages:
      return unit == "messages";
    case dimension::rate:
      return false;
    case dimension::none:
      return unit == "x";
  }
  return false;
}

std::string_view units_of(std::string_view metric) {
  switch (row_of(metric).is) {
    case dimension::time:
      return "us, ms, s";
    case dimension::operations:
      return "operations";
    case dimension::messages:
      return "messages";
    case dimension::rate:
      return "none without a denominator";
    case dimension::none:
      return "x";
  }
  return "";
}

bool is_of_two_runs(std::string_view metric) { return metric == p75_by_p25; }

std::optional<double> metric_of(const json& run, std::string_view metric, bool divides) {
  return row_of(metric).of(run, divides);
}

double per_base(std::string_view unit) {
  if (unit == "us") return 1e6;
  if (unit == "ms") return 1e3;
  if (unit == "thousand operations/s") return 1e-3;
  if (unit == "million operations/s") return 1e-6;
  return 1;
}

std::vector<std::string> names_of_figure_metrics() {
  std::vector<std::string> names = names_of_metrics();
  for (const distribution& d : distributions) names.emplace_back(d.name);
  return names;
}

bool is_distribution(std::string_view metric) {
  return std::any_of(std::begin(distributions), std::end(distributions),
                     [&](const distribution& d) { return d.name == metric; });
}

const std::vector<std::string>& units_of_figures() {
  static const std::vector<std::string> units{"us",
                                              "ms",
                                              "s",
                                              "operations",
                                              "messages",
                                              "x",
                                              "operations/s",
                                              "thousand operations/s",
                                              "million operations/s"};
  return units;
}

bool fits_figure(std::string_view metric, std::string_view unit) {
  if (is_distribution(metric)) return unit == "us" || unit == "ms" || unit == "s";
  if (row_of(metric).is == dimension::rate) return unit.ends_with("operations/s");
  return fits(metric, unit);
}

std::vector<std::pair<double, double>> distribution_of(const json& run, std::string_view metric) {
  std::vector<std::pair<double, double>> points;
  for (const distribution& d : distributions)
    if (d.name == metric)
      if (const auto at = run.find(d.field); at != run.end())
        for (const json& point : *at)
          points.emplace_back(point.at(0).get<double>() * 1e-6, point.at(1).get<double>());
  return points;
}

}  // namespace lockflight::reproduce
