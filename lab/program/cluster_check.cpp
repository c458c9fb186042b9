#include "lab/program/cluster_check.hpp"

#include <fmt/format.h>

#include <chrono>

#include "lab/cluster/campaign.hpp"
#include "lab/program/commands.hpp"
#include "lab/program/progress.hpp"
#include "tool/values.hpp"

namespace lockflight::lab {
namespace {

namespace simulated = cluster::sim;

constexpr std::size_t most_lines = 200;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

int run_cluster_check(const arguments& given, console& out) {
  simulated::campaign asked;
  asked.virtual_hours = 100;
  if (const auto text = given.one("--seed")) {
    asked.first_seed = whole_number("--seed", *text, 0, UINT64_MAX);
    asked.most_seeds = 1;
  }
  if (const auto text = given.one("--hours")) {
    asked.virtual_hours = real_number("--hours", *text, 0.001, 1e9);
    asked.most_seeds = UINT64_MAX;
  }
  double most_seconds = 1e9;
  if (const auto text = given.one("--seconds")) {
    most_seconds = seconds_number("--seconds", *text, 0.001, 1e9);
    if (!given.has("--hours")) asked.virtual_hours = 1e9;
  }
  const auto start = std::chrono::steady_clock::now();
  progress_line line;
  asked.goes_on = [&](const simulated::progress& now) {
    if (now.seeds % 100 == 0)
      line.show(fmt::format("{} histories, {:.0f} virtual hours", now.seeds, now.virtual_hours));
    return seconds_since(start) < most_seconds;
  };
  const simulated::progress made = simulated::run(asked, simulated::intact_core());
  const double took = seconds_since(start);
  out.line(fmt::format(
      "{} histories, {:.1f} virtual hours, {} acquires, {:.1f} s ({:.0f} virtual "
      "hours a minute)",
      made.seeds, made.virtual_hours, made.entries, took, made.virtual_hours / took * 60));
  if (!made.found) {
    out.line(out.paint(style::good, "ok: no rule is broken in these histories"));
    return 0;
  }
  out.line(out.paint(style::bad, "violation: " + made.found->text));
  out.line();
  out.print(simulated::text_of(*made.found, most_lines));
  out.line();
  out.line(fmt::format("again: lockflight check --cluster --seed {}", made.found->what.seed));
  return 1;
}

}  // namespace lockflight::lab
