#include "lab/report/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "lab/report/report.hpp"
#include "lab/report/text.hpp"

namespace lockflight::report {
namespace {

using nlohmann::json;

/// A cell's text and its sort key.
struct cell {
  std::string shown;
  std::string sort_key;
};

cell text_cell(const json& value) {
  const std::string text = value.is_null() ? "" : plain(value);
  return {escape_html(text.empty() ? "–" : text), escape_html(text)};
}

cell number_cell(const json& value, std::string (*format)(double)) {
  // An empty key sorts last, whichever way.
  if (!value.is_number()) return {"–", ""};
  const auto number = value.get<double>();
  return {format(number), fmt::format("{}", number)};
}

cell percent_cell(const json& value) {
  if (!value.is_number()) return {"–", ""};
  const auto number = value.get<double>();
  return {rounded(100 * number) + "\u202f%", fmt::format("{}", number)};
}

json latency(const json& run, const char* field) {
  const json& stats = run.at("latency_us");
  return stats.is_null() ? json() : stats.at(field);
}

/// Fabric operations of one acquire plus one release. Flushes are left out: they wait for
/// operations but are not operations. Loopback is left out: it counts operations that are counted
/// already.
json network_per_op(const json& run) {
  const auto ops = run.at("ops").get<double>();
  if (ops == 0) return {};
  const json& fabric = run.at("fabric_ops");
  double sum = fabric.at("messages").get<double>();
  for (const char* name : {"put", "get", "add", "fetch_add", "swap", "cas"}) {
    sum += fabric.at("nic").at(name).get<double>();
  }
  return sum / ops;
}

std::string params_text(const json& params) {
  std::string out;
  for (const auto& [name, value] : params.items()) {
    out += fmt::format("{}{}={}", out.empty() ? "" : " ", name, plain(value));
  }
  return out;
}

/// Other settings that some workloads have, as the options of `bench` name them.
std::string settings_text(const json& run) {
  constexpr std::pair<const char*, const char*> known[] = {
      {"locks", "locks"},  {"think_us", "think"}, {"call_us", "call"},
      {"hold_us", "hold"}, {"skew", "skew"},      {"bytes", "bytes"}};
  std::string out;
  for (const auto& [field, name] : known) {
    const auto value = run.find(field);
    if (value == run.end() || !value->is_number()) continue;
    out += fmt::format("{}{}={}", out.empty() ? "" : " ", name, plain(*value));
  }
  return out;
}

struct column {
  std::string_view title;
  std::string_view help;
  bool numeric;
  cell (*make)(const json& run);
  bool is_term = false;     ///< explained below the table too
  bool is_setting = false;  ///< among the first columns if it differs between runs
};

const column columns[] = {
    {"Lock", "Name of the lock", false, [](const json& r) { return text_cell(r.at("lock")); }},
    {"Workload", "Benchmark that was run", false,
     [](const json& r) { return text_cell(r.at("workload")); }},
    {"Ranks", "Number of participants", true,
     [](const json& r) { return number_cell(r.at("procs"), rounded); }},
    {"Writers", "Fraction of operations that write; a mutex has no readers", true,
     [](const json& r) {
       return r.at("kind") == "rw" ? percent_cell(r.at("writers")) : cell{"–", ""};
     }},
    {"Ops/s", "Operations per second, all ranks together", true,
     [](const json& r) { return number_cell(r.at("throughput_ops_s"), scaled); }},
    {"Mean µs",
     "Mean latency of one acquire plus one release, or of what the workload times instead", true,
     [](const json& r) { return number_cell(latency(r, "mean"), rounded); }},
    {"p50 µs", "Median latency: half of the operations take no longer", true,
     [](const json& r) { return number_cell(latency(r, "p50"), rounded); }, true},
    {"p99 µs", "99th percentile of the latency: one operation in a hundred takes longer", true,
     [](const json& r) { return number_cell(latency(r, "p99"), rounded); }, true},
    {"p99.9 µs", "99.9th percentile of the latency", true,
     [](const json& r) { return number_cell(latency(r, "p999"), rounded); }},
    {"Max µs", "Largest latency", true,
     [](const json& r) { return number_cell(latency(r, "max"), rounded); }},
    {"Net/op", "Network operations and messages of what the latency is of, no flushes", true,
     [](const json& r) { return number_cell(network_per_op(r), rounded); }, true},
    {"Jain",
     "Jain's index of fairness: 1 if all ranks did as many operations, 1/ranks if one did all",
     true,
     [](const json& r) {
       return number_cell(has_lock(r) ? r.at("fairness_jain") : json(), rounded);
     },
     true},
    {"Wait µs", "Longest wait of any rank for one acquire", true,
     [](const json& r) { return number_cell(has_lock(r) ? r.at("max_wait_us") : json(), rounded); },
     true},
    {"Violations", "Broken mutual exclusion that the run itself saw", true,
     [](const json& r) { return number_cell(has_lock(r) ? r.at("violations") : json(), rounded); }},
    {"Kind", "Mutex or reader-writer lock", false,
     [](const json& r) { return text_cell(has_lock(r) ? r.at("kind") : json("no lock")); }},
    {"Fabric", "What the operations went over", false,
     [](const json& r) { return text_cell(r.at("fabric")); }},
    {"Machine", "Profile of the simulated machine", false,
     [](const json& r) { return text_cell(r.at("machine")); }, false, true},
    {"Levels", "Elements per level below the machine", false,
     [](const json& r) { return text_cell(r.at("levels")); }},
    {"Locality", "Fraction of operations on locks of the own node", true,
     [](const json& r) { return percent_cell(r.at("locality")); }, false, true},
    {"Settings", "Number of locks, hold time in µs, bytes written", false,
     [](const json& r) { return text_cell(settings_text(r)); }, false, true},
    {"Parameters", "Parameters of the lock", false,
     [](const json& r) { return text_cell(params_text(r.at("params"))); }, false, true},
};

/// All columns; the settings that differ between the runs of a sweep come before what was measured.
std::vector<column> columns_for(const json& runs) {
  std::vector<column> all(std::begin(columns), std::end(columns));
  const auto differs = [&](const column& c) {
    return c.is_setting && std::any_of(runs.begin(), runs.end(), [&](const json& run) {
             return c.make(run).shown != c.make(runs.front()).shown;
           });
  };
  const auto measured =
      std::find_if(all.begin(), all.end(), [](const column& c) { return c.title == "Ops/s"; });
  std::stable_partition(measured, all.end(), differs);
  return all;
}

/// The workloads, fabrics and machines in the order of the document, in each the runs with the most
/// ranks first, and among those the one with the highest throughput.
std::vector<const json*> ordered(const json& runs) {
  std::map<std::string, std::size_t> places;
  std::vector<std::pair<std::tuple<std::size_t, double, double>, const json*>> keyed;
  for (const json& run : runs) {
    const std::string group = json{run.at("workload"), run.at("fabric"), run.at("machine")}.dump();
    const std::size_t place = places.emplace(group, places.size()).first->second;
    keyed.push_back(
        {{place, -run.at("procs").get<double>(), -run.at("throughput_ops_s").get<double>()}, &run});
  }
  std::stable_sort(keyed.begin(), keyed.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<const json*> sorted;
  for (const auto& one : keyed) sorted.push_back(one.second);
  return sorted;
}

std::string table_row(const json& run, const std::vector<column>& shown, bool is_own) {
  const bool broken = run.at("violations").get<double>() > 0;
  std::string out = fmt::format("<tr{}>", broken   ? " class=\"broken\""
                                          : is_own ? " class=\"own\""
                                                   : "");
  bool first = true;
  for (const column& c : shown) {
    const cell made = c.make(run);
    // The lock's name heads its row, for screen readers.
    const std::string_view tag = first ? "th scope=\"row\"" : "td";
    out += fmt::format("<{}{} data-key=\"{}\">{}</{}>", tag, c.numeric ? " class=\"num\"" : "",
                       made.sort_key, made.shown, first ? "th" : "td");
    first = false;
  }
  return out + "</tr>\n";
}

}  // namespace

std::string table_head(const json& runs) {
  std::string out = "<tr>";
  const bool has_locks = runs.empty() || std::any_of(runs.begin(), runs.end(), has_lock);
  for (column c : columns_for(runs)) {
    if (!has_locks && c.title == "Lock") c = {"Measured", "What was run", false, c.make};
    out += fmt::format(
        "<th scope=\"col\" class=\"{}\"><button type=\"button\" title=\"{}\">{}</button></th>",
        c.numeric ? "num" : "txt", escape_html(c.help), escape_html(c.title));
  }
  return out + "</tr>";
}

std::string table_body(const json& runs, const std::vector<std::string>& own_locks) {
  std::string out;
  const std::vector<column> shown = columns_for(runs);
  for (const json* const run : ordered(runs))
    out += table_row(*run, shown, is_in(own_locks, run->at("lock").get<std::string>()));
  return out;
}

std::string table_terms() {
  std::string out;
  for (const column& c : columns)
    if (c.is_term)
      out += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>", escape_html(c.title),
                         escape_html(c.help));
  return out;
}

}  // namespace lockflight::report
