#include "lab/program/bench_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "lab/report/report.hpp"
#include "tool/table.hpp"
#include "tool/text.hpp"

namespace lockflight::lab {
namespace {

using nlohmann::json;

constexpr const char* none = "–";

std::string number(const json& value) {
  return value.is_number() ? rounded(value.get<double>()) : none;
}

std::string text(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.is_null() ? none : value.dump();
}

std::string latency(const json& run, const char* which) {
  const json& all = run.at("latency_us");
  return all.is_null() ? none : number(all.at(which));
}

/// Network operations and messages of one acquire plus one release. Flushes wait for operations but
/// are not operations.
std::string network_per_op(const json& run) {
  const auto ops = run.at("ops").get<double>();
  if (ops == 0) return none;
  const json& nic = run.at("fabric_ops").at("nic");
  double sum = run.at("fabric_ops").at("messages").get<double>();
  for (const char* kind : {"put", "get", "add", "fetch_add", "swap", "cas"})
    sum += nic.at(kind).get<double>();
  return rounded(sum / ops);
}

/// For each level, from the machine down, how often an operation got the lock by a handoff at that
/// level.
std::string handoffs_per_op(const json& run) {
  const auto ops = run.at("ops").get<double>();
  std::vector<std::string> levels;
  for (const json& count : run.at("handoffs"))
    levels.push_back(ops == 0 ? none : fmt::format("{:.2f}", count.get<double>() / ops));
  return levels.empty() ? none : joined(levels, "/");
}

double throughput(const json& run) { return run.at("throughput_ops_s").get<double>(); }

std::string fairness(const json& value) {
  return value.is_number() ? fmt::format("{:.3f}", value.get<double>()) : none;
}

std::string percent(const json& value) {
  return value.is_number() ? fmt::format("{:.3g} %", 100 * value.get<double>()) : none;
}

/// A field that only some workloads have.
std::string optional(const json& run, const char* field) {
  const auto value = run.find(field);
  return value == run.end() ? none : fmt::format("{:g}", value->get<double>());
}

/// A machine of one level has only the number of ranks, which is shown already.
std::string levels(const json& run) {
  const std::string spec = text(run.at("levels"));
  return spec.find_first_not_of("0123456789") == std::string::npos ? none : spec;
}

std::string parameters(const json& run) {
  std::vector<std::string> all;
  for (const auto& [name, value] : run.at("params").items())
    all.push_back(name + "=" + value.dump());
  return all.empty() ? none : joined(all, " ");
}

/// A setting that may differ between runs: a column if it does, else a few words above the table.
struct setting {
  const char* title;
  bool numeric;
  int importance;
  std::string (*of)(const json& run);
  const char* above;  ///< the words above the table; {} is the value
};

const setting settings[] = {
    {"workload", false, 0, [](const json& r) { return text(r.at("workload")); }, "{}"},
    {"fabric", false, 0, [](const json& r) { return text(r.at("fabric")); }, " on {}"},
    {"machine", false, 0, [](const json& r) { return text(r.at("machine")); }, ", machine {}"},
    {"procs", true, 0, [](const json& r) { return text(r.at("procs")); }, ", procs {}"},
    {"levels", true, 0, levels, ", levels {}"},
    {"F_W", true, 0, [](const json& r) { return percent(r.at("writers")); }, ", F_W {}"},
    {"timed", true, 0, [](const json& r) { return optional(r, "sample"); }, ", one in {} timed"},
    {"locality", true, 0, [](const json& r) { return percent(r.at("locality")); }, ", locality {}"},
    {"locks", true, 0, [](const json& r) { return optional(r, "locks"); }, ", locks {}"},
    {"think µs", true, 0, [](const json& r) { return optional(r, "think_us"); }, ", think {} µs"},
    {"call µs", true, 0, [](const json& r) { return optional(r, "call_us"); }, ", call {} µs"},
    {"hold µs", true, 0, [](const json& r) { return optional(r, "hold_us"); }, ", hold {} µs"},
    {"skew", true, 0, [](const json& r) { return optional(r, "skew"); }, ", skew {}"},
    {"bytes", true, 0, [](const json& r) { return optional(r, "bytes"); }, ", bytes {}"},
};

bool differs(const json& runs, const setting& s) {
  return std::any_of(runs.begin(), runs.end(),
                     [&](const json& r) { return s.of(r) != s.of(runs.front()); });
}

/// Runs that only differ in the lock are of one group.
std::string group_of(const json& run) {
  std::string key;
  for (const setting& s : settings) key += s.of(run) + '\n';
  return key;
}

struct groups {
  std::vector<std::vector<json>> all;

  explicit groups(const json& runs) {
    std::map<std::string, std::size_t> number;
    for (const json& run : runs) {
      const auto [at, is_new] = number.emplace(group_of(run), all.size());
      if (is_new) all.emplace_back();
      all[at->second].push_back(run);
    }
  }
};

/// A result: a column of the table.
struct result {
  enum class painted { never, if_best, if_broken };

  const char* title;
  int importance;
  std::string (*of)(const json& run);
  bool of_locks = false;  ///< left out of a table of runs without locks
  painted when = painted::never;
};

const result results[] = {
    {"ops/s", 0, [](const json& r) { return scaled(throughput(r)); }, false,
     result::painted::if_best},
    {"mean µs", 0, [](const json& r) { return latency(r, "mean"); }},
    {"p50 µs", 5, [](const json& r) { return latency(r, "p50"); }},
    {"p99 µs", 6, [](const json& r) { return latency(r, "p99"); }},
    {"max µs", 3, [](const json& r) { return latency(r, "max"); }},
    {"net/op", 4, network_per_op},
    {"handoffs/op", 1, handoffs_per_op, true},
    {"fairness", 2, [](const json& r) { return fairness(r.at("fairness_jain")); }, true},
    {"wait µs", 3, [](const json& r) { return number(r.at("max_wait_us")); }, true},
    {"violations", 0, [](const json& r) { return r.at("violations").dump(); }, true,
     result::painted::if_broken},
};

/// The columns and the kinds of rows of a table.
struct layout {
  bool has_locks = false;
  bool parameters_differ = false;
  std::vector<setting> varying;

  [[nodiscard]] bool shows(const result& what) const { return has_locks || !what.of_locks; }
};

layout layout_for(const json& runs) {
  layout of;
  of.has_locks = std::any_of(runs.begin(), runs.end(), report::has_lock);
  for (const setting& s : settings)
    if (differs(runs, s)) of.varying.push_back(s);
  std::map<std::string, std::string> parameters_of;
  for (const json& run : runs) {
    const auto [at, is_new] = parameters_of.emplace(text(run.at("lock")), parameters(run));
    of.parameters_differ = of.parameters_differ || at->second != parameters(run);
  }
  return of;
}

/// The runs without a share of writers, if none of them is of a reader-writer lock.
json without_idle_settings(json runs) {
  if (std::none_of(runs.begin(), runs.end(), [](const json& r) { return r.at("kind") == "rw"; }))
    for (json& run : runs) run["writers"] = nullptr;
  return runs;
}

std::vector<table_column> columns_for(const layout& of) {
  std::vector<table_column> columns{
      {.title = of.has_locks ? "lock" : "measured", .numeric = false}};
  for (const setting& s : of.varying)
    columns.push_back({.title = s.title, .numeric = s.numeric, .importance = s.importance});
  for (const result& what : results)
    if (of.shows(what)) columns.push_back({.title = what.title, .importance = what.importance});
  if (of.parameters_differ)
    columns.push_back({.title = "parameters", .numeric = false, .importance = 1});
  return columns;
}

std::vector<table_cell> row_for(const json& run, const layout& of, bool best) {
  const bool is_broken = run.at("violations").get<std::uint64_t>() > 0;
  const auto look = [&](result::painted when) {
    if (when == result::painted::if_best && best) return style::good;
    return when == result::painted::if_broken && is_broken ? style::bad : style::plain;
  };
  std::vector<table_cell> row{{text(run.at("lock")), look(result::painted::if_best)}};
  for (const setting& s : of.varying) row.push_back({s.of(run)});
  for (const result& what : results)
    if (of.shows(what)) row.push_back({what.of(run), look(what.when)});
  if (of.parameters_differ) row.push_back({parameters(run)});
  return row;
}

/// "ecsb on shm, procs 4, F_W 0.2 %".
std::string common_settings(const json& runs) {
  std::string out;
  for (const setting& s : settings)
    if (!differs(runs, s) && s.of(runs.front()) != none)
      out += fmt::format(fmt::runtime(s.above), s.of(runs.front()));
  return out.substr(std::min(out.find_first_not_of(", "), out.size()));
}

void print_hosts(console& out, const json& hosts) {
  std::vector<std::string> all;
  constexpr std::size_t most = 8;
  for (const json& host : hosts) {
    if (all.size() == most) break;
    all.push_back(text(host.at("name")) + ": " + report::host_in_words(host));
  }
  if (hosts.size() > most) all.push_back("...");
  out.line(fmt::format("{} hosts ({})", hosts.size(), joined(all, "; ")));
}

/// The sentence about the latency and the network operations of runs like this one.
std::string footer(const json& run) {
  const json& workload = run.at("workload");
  constexpr const char* of_all = "; net/op counts the network operations of all ranks in a round.";
  if (workload == "cascade")
    return std::string("Latency is rank 0's, from its release until it has the lock again") +
           of_all;
  if (workload == "dht-writer")
    return std::string("Latency is rank 0's, to write and release while all others wait") + of_all;
  return fmt::format("Latency is that of {}; net/op counts its network operations.",
                     report::has_lock(run)     ? "one acquire plus one release"
                     : workload == "primitive" ? "one operation"
                                               : "one iteration");
}

}  // namespace

void print_bench(console& out, const json& bench) {
  const json runs = without_idle_settings(bench.at("runs"));
  if (runs.empty()) return out.line("no runs");
  const layout shown = layout_for(runs);
  out.line(out.paint(style::heading, common_settings(runs)));
  if (const auto hosts = bench.find("hosts"); hosts != bench.end()) print_hosts(out, *hosts);
  out.line();
  table t(columns_for(shown));
  const groups by_setting(runs);
  for (const auto& group : by_setting.all) {
    if (&group != &by_setting.all.front()) t.add_gap();
    double best = 0;
    for (const json& run : group) best = std::max(best, throughput(run));
    for (const json& run : group)
      t.add_row(row_for(run, shown, group.size() > 1 && throughput(run) == best));
  }
  const std::vector<std::string> left_out = t.print(out);
  out.line();
  if (const std::string what = report::unwitnessed_in(bench); !what.empty()) out.line(what);
  for (const std::string& loss : report::losses_in(bench)) out.line(out.paint(style::bad, loss));
  out.line(footer(runs.front()));
  if (!left_out.empty())
    out.line(
        fmt::format("No room here for: {}. --json and --html have everything.", joined(left_out)));
}

std::string violations_in(const json& bench) {
  std::map<std::string, std::uint64_t> by_lock;
  for (const json& run : bench.at("runs"))
    if (const auto seen = run.at("violations").get<std::uint64_t>(); seen > 0)
      by_lock[text(run.at("lock"))] += seen;
  std::vector<std::string> all;
  for (const auto& [lock, seen] : by_lock) all.push_back(fmt::format("{} ({} times)", lock, seen));
  return all.empty() ? "" : "mutual exclusion was broken in " + joined(all);
}

}  // namespace lockflight::lab
