// Fills the page template. The facts, the verdict and the table, which a reader needs without
// scripts, are written here; our scripts draw the charts from the document itself.
#include "lab/report/report.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/joined.hpp"
#include "lab/report/page.hpp"
#include "lab/report/table.hpp"
#include "lab/report/text.hpp"

namespace lockflight::report {
namespace {

using nlohmann::json;

/// The distinct values of a field in the order of first appearance; null is left out.
std::vector<std::string> distinct(const json& runs, const char* field) {
  std::vector<std::string> out;
  std::set<std::string> seen;
  for (const json& run : runs) {
    const json& value = run.at(field);
    if (!value.is_null() && seen.insert(plain(value)).second) out.push_back(plain(value));
  }
  return out;
}

std::string listed(const std::vector<std::string>& names) {
  std::string out;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i != 0) out += i + 1 == names.size() ? " and " : ", ";
    out += names[i];
  }
  return out;
}

std::string rank_range(const json& runs) {
  std::set<std::uint64_t> counts;
  for (const json& run : runs) counts.insert(run.at("procs").get<std::uint64_t>());
  const auto low = static_cast<double>(*counts.begin());
  if (counts.size() == 1) return counted(*counts.begin(), "rank", "ranks");
  return fmt::format("{} to {} ranks", rounded(low),
                     rounded(static_cast<double>(*counts.rbegin())));
}

/// The runs of which `is_meant` is true.
template <class IsMeant>
json runs_that(const json& runs, IsMeant is_meant) {
  json out = json::array();
  for (const json& run : runs)
    if (is_meant(run)) out.push_back(run);
  return out;
}

/// "6 locks", "7 operations of the fabric", "a stencil without a lock".
std::string measured(const json& runs) {
  const auto of_workload = [&](std::string_view name) {
    return distinct(
        runs_that(runs,
                  [&](const json& run) { return !has_lock(run) && run.at("workload") == name; }),
        "lock");
  };
  std::vector<std::string> parts;
  if (const auto locks = distinct(runs_that(runs, has_lock), "lock"); !locks.empty())
    parts.push_back(counted(locks.size(), "lock", "locks"));
  if (const auto some = of_workload("primitive"); !some.empty())
    parts.push_back(counted(some.size(), "operation", "operations") + " of the fabric");
  if (!of_workload("stencil").empty()) parts.emplace_back("a stencil without a lock");
  return listed(parts);
}

/// "6 locks on 1 to 64 ranks over sim (cray-xc30): workloads ecsb and warb, 60 runs".
std::string summary(const json& runs) {
  if (runs.empty()) return "Nothing was run.";
  const auto machines = distinct(runs, "machine");
  const auto workloads = distinct(runs, "workload");
  std::string out = measured(runs);
  out += fmt::format(" on {} over {}", rank_range(runs), listed(distinct(runs, "fabric")));
  if (!machines.empty()) out += fmt::format(" ({})", listed(machines));
  out += fmt::format("; {} {}; {}", workloads.size() == 1 ? "workload" : "workloads",
                     listed(workloads), counted(runs.size(), "run", "runs"));
  return out;
}

std::string verdict(const json& all) {
  if (all.empty()) return banner("none", "–", "No runs.", "This document holds no measurement.");
  const json runs = runs_that(all, has_lock);
  if (runs.empty())
    return banner("none", "–", "No lock was run.", "There is no mutual exclusion to check.");
  double seen = 0;
  std::size_t broken = 0;
  std::size_t empty = 0;
  std::map<std::string, double> by_lock;
  for (const json& run : runs) {
    const auto violations = run.at("violations").get<double>();
    if (run.at("ops").get<double>() == 0) ++empty;
    if (violations == 0) continue;
    seen += violations;
    ++broken;
    by_lock[run.at("lock").get<std::string>()] += violations;
  }
  if (empty == runs.size())
    return banner("none", "!", "No operation ended.",
                  "The runs were too short for one (--seconds, --ops), so mutual exclusion was not "
                  "tried.");
  if (broken == 0) {
    const std::size_t tried = runs.size() - empty;
    return banner("good", "✓", "0 violations.",
                  fmt::format("Mutual exclusion held in {}.{}",
                              tried == 1 ? "the one run"
                                         : fmt::format("all {} runs{}", tried,
                                                       empty == 0 ? "" : " with operations"),
                              empty == 0 ? ""
                                         : fmt::format(" {} ended before an operation did.",
                                                       counted(empty, "run", "runs"))));
  }
  std::vector<std::string> culprits;
  for (const auto& [lock, violations] : by_lock) {
    culprits.push_back(fmt::format("{} ({})", lock, rounded(violations)));
  }
  return banner("bad", "✗", fmt::format("{} violation{}.", rounded(seen), seen == 1 ? "" : "s"),
                fmt::format("Mutual exclusion broke in {} of {}: {}.", broken,
                            counted(runs.size(), "run", "runs"), listed(culprits)));
}

std::string losses(const json& bench) {
  const std::string all = joined(losses_in(bench), " ");
  return all.empty() ? "" : banner("none", "!", "Ranks were lost.", all);
}

std::string unwitnessed(const json& bench) {
  const std::string what = unwitnessed_in(bench);
  return what.empty() ? "" : banner("none", "!", "Not checked across hosts.", what);
}

/// Names the project's own locks among the runs, which the page highlights.
std::string own_note(const json& runs, const std::vector<std::string>& own_locks) {
  std::vector<std::string> here = distinct(runs, "lock");
  std::erase_if(here, [&](const std::string& lock) { return !is_in(own_locks, lock); });
  if (here.empty()) return "";
  return fmt::format(
      "<p class=\"note own-note\">lockflight's own {} <strong>{}</strong>: bold, and in colour "
      "among plain bars.</p>",
      here.size() == 1 ? "lock is" : "locks are", escape_html(listed(here)));
}

std::string fact(std::string label, const std::string& value) {
  for (char& c : label) {
    if (c == '_') c = ' ';
  }
  return fmt::format("<div><dt>{}</dt><dd>{}</dd></div>", escape_html(label), escape_html(value));
}

/// Objects in the host's facts become one fact per member.
void add_facts(const json& host, const std::string& prefix, std::string& out) {
  for (const auto& [name, value] : host.items()) {
    if (value.is_object()) {
      add_facts(value, prefix + name + " ", out);
    } else if (!value.is_null() && name != "date") {
      out += fact(prefix + name, plain(value));
    }
  }
}

std::string host_facts(const json& bench) {
  json host = bench.at("host");
  const json& runs = bench.at("runs");
  std::string out;
  if (const auto date = host.find("date"); date != host.end() && !date->is_null()) {
    out += fact("date", plain(*date));
  }
  if (const auto machines = distinct(runs, "machine"); !machines.empty())
    out += fact("simulated machine", listed(machines));
  const bool is_simulated =
      !runs.empty() && std::all_of(runs.begin(), runs.end(),
                                   [](const json& run) { return run.at("fabric") == "sim"; });
  // The time of a simulation is not that of the host's clock.
  if (is_simulated)
    for (const char* const of_clock : {"clock", "clock_read_ns"}) host.erase(of_clock);
  add_facts(host, is_simulated ? "simulated on: " : "", out);
  if (const auto hosts = bench.find("hosts"); hosts != bench.end())
    for (const json& one : *hosts)
      out += fact(plain(one.at("name")),
                  fmt::format("{}, {}", plain(one.at("cpu_model")), host_in_words(one)));
  return out;
}

}  // namespace

std::string host_in_words(const json& host) {
  std::vector<std::string> ranks;
  for (const json& rank : host.at("ranks")) ranks.push_back(plain(rank));
  return fmt::format("{} {}, {}", ranks.size() == 1 ? "rank" : "ranks", listed(ranks),
                     counted(host.at("cores").get<std::size_t>(), "core", "cores"));
}

std::string unwitnessed_in(const json& bench) {
  const json& runs = bench.at("runs");
  const auto is_within_hosts = [](const json& run) {
    const auto found = run.find("witnessed");
    return found != run.end() && *found == "within hosts";
  };
  if (std::none_of(runs.begin(), runs.end(), is_within_hosts)) return "";
  return "Mutual exclusion was checked among the ranks of each host, not across hosts, and "
         "handoffs are not known: bench --witness sees both.";
}

std::vector<std::string> losses_in(const json& bench) {
  std::vector<std::string> all;
  for (const json& run : bench.at("runs")) {
    const auto lost = run.find("lost_ranks");
    if (lost == run.end() || lost->empty()) continue;
    std::vector<std::string> ranks;
    for (const json& rank : *lost) ranks.push_back(plain(rank));
    const bool one = ranks.size() == 1;
    all.push_back(fmt::format(
        "{} with {} ranks: {} lost, and the others went on: {} operations are not counted.",
        plain(run.at("lock")), plain(run.at("procs")),
        one ? fmt::format("rank {} was", ranks.front())
            : fmt::format("{} ranks ({}) were", ranks.size(), listed(ranks)),
        one ? "its" : "their"));
  }
  return all;
}

std::string render_html(const json& bench, const std::vector<std::string>& own_locks) {
  validate(bench);
  const json& runs = bench.at("runs");
  const std::string what = summary(runs);
  slots values;
  values["title"] = escape_html("lockflight: " + what);
  values["version"] = escape_html(plain(bench.at("lockflight")));
  values["summary"] = escape_html(what);
  values["verdict"] = verdict(runs) + losses(bench) + unwitnessed(bench);
  values["facts"] = host_facts(bench);
  values["table_head"] = table_head(runs);
  values["table_body"] = table_body(runs, own_locks);
  values["terms"] = table_terms();
  values["own_note"] = own_note(runs, own_locks);
  values["run_count"] = counted(runs.size(), "run", "runs");
  values["bench_json"] = script_json(bench);
  values["about"] = "benchmark report";
  for (const char* const script : {"boxes", "over", "grid", "charts"})
    values[fmt::format("{}_script", script)] =
        part_named(page_parts(), fmt::format("report_{}", script));
  values["page_script"] = part_named(page_parts(), "report");
  return page_of(part_named(page_parts(), "template"), std::move(values), own_locks);
}

}  // namespace lockflight::report
