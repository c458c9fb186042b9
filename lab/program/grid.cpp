// lockflight grid: flight and flight-rw beside all other locks on the simulated machines.
#include "lab/reproduce/grid.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "base/visible_text.hpp"
#include "lab/program/commands.hpp"
#include "lab/program/output_file.hpp"
#include "lab/program/progress.hpp"
#include "lab/reproduce/reproduce.hpp"
#include "lab/sim/machine.hpp"
#include "tool/console.hpp"
#include "tool/table.hpp"
#include "tool/text.hpp"
#include "tool/usage.hpp"
#include "tool/values.hpp"

namespace lockflight::lab {
namespace {

using reproduce::grid_outcome;

constexpr int most_ranks = 65'536;
constexpr int most_locks = 10'000;
constexpr int most_times = 1'000;
constexpr double most_below = 100;

reproduce::grid_choice choice(const arguments& given) {
  reproduce::grid_choice which{.quick = given.has("--quick")};
  const std::vector<std::string> known = sim::names_of_machines();
  if (const auto names = given.one("--machine")) {
    which.machines = words("--machine", *names, joined(known));
    for (const std::string& name : which.machines)
      if (std::find(known.begin(), known.end(), name) == known.end())
        throw unknown_name("--machine", name, known);
  }
  if (const auto procs = given.one("--procs"))
    which.procs = whole_numbers("--procs", *procs, 1, most_ranks);
  if (const auto locks = given.one("--locks"))
    which.locks = whole_numbers("--locks", *locks, 1, most_locks);
  if (const auto writers = given.one("--writers"))
    which.writers = real_number("--writers", *writers, 0, 1);
  if (const auto below = given.one("--below"))
    which.below = real_number("--below", *below, 0, most_below);
  return which;
}

void print_short(console& out, const std::vector<grid_outcome>& all) {
  table shown({{.title = "machine", .numeric = false},
               {.title = "ranks"},
               {.title = "writers", .numeric = false},
               {.title = "locks", .numeric = false},
               {.title = "lock", .numeric = false},
               {.title = "ops/s", .importance = 2},
               {.title = "best other", .numeric = false},
               {.title = "its ops/s", .importance = 3},
               {.title = "ratio"}});
  bool any = false;
  for (const grid_outcome& o : all) {
    if (!o.falls_short()) continue;
    any = true;
    const reproduce::grid_cell& in = o.of.in;
    shown.add_row({{in.machine},
                   {std::to_string(in.procs)},
                   {reproduce::said_of_writers(in.writers)},
                   {reproduce::said_of_locks(in)},
                   {o.of.lock},
                   {o.ops_s ? scaled(*o.ops_s) : "–"},
                   {o.best},
                   {o.best.empty() ? "" : scaled(o.best_ops_s)},
                   {o.why.empty() ? rounded(o.ratio()) : visible(o.why), style::bad}});
  }
  if (!any) return;
  static_cast<void>(shown.print(out));
  out.line();
}

// For each machine and share of writers: the median ratio and the least one.
void print_medians(console& out, const std::vector<grid_outcome>& all) {
  const std::vector<reproduce::grid_median> medians = reproduce::medians_of(all);
  table shown({{.title = "machine", .numeric = false},
               {.title = "writers", .numeric = false},
               {.title = "flight"},
               {.title = "least"},
               {.title = "flight-rw"},
               {.title = "least"}});
  std::set<std::pair<std::string, double>> done;
  for (const reproduce::grid_median& of_row : medians) {
    if (!done.emplace(of_row.machine, of_row.writers).second) continue;
    std::vector<table_cell> row{{of_row.machine.empty() ? "all" : of_row.machine},
                                {reproduce::said_of_writers(of_row.writers)}};
    for (const char* const lock : {"flight", "flight-rw"}) {
      const auto at = std::find_if(medians.begin(), medians.end(), [&](const auto& m) {
        return m.machine == of_row.machine && m.writers == of_row.writers && m.lock == lock;
      });
      if (at == medians.end() || at->cells == 0) {
        row.insert(row.end(), {{at == medians.end() ? "" : "–"}, {""}});
        continue;
      }
      row.push_back({rounded(at->median)});
      row.push_back({rounded(at->least), at->falls_short > 0 ? style::bad : style::good});
    }
    shown.add_row(std::move(row));
  }
  static_cast<void>(shown.print(out));
}

std::string progress_of(const reproduce::standing& now, double seconds) {
  std::string text = fmt::format("[{}/{}]", now.done, now.of);
  if (!now.now.empty()) text += " " + joined(now.now, "; ");
  return text + fmt::format(", {:.0f} s", seconds);
}

int run_grid(const arguments& given, console& out) {
  const reproduce::grid_choice which = choice(given);
  reproduce::grid_length length{.quick = which.quick};
  if (const auto times = given.one("--times"))
    length.times = static_cast<int>(whole_number("--times", *times, 1, most_times));
  reproduce::how way;
  if (const auto jobs = given.one("--jobs"))
    way.at_a_time = static_cast<unsigned>(whole_number("--jobs", *jobs, 1, 1024));
  const auto to = given.one("--json");
  std::optional<output_file> json;
  if (to && *to != "-") json.emplace("--json", *to);
  const std::vector<reproduce::contest> contests = reproduce::contests_of_grid(which);
  if (contests.empty())
    throw refuse("--procs", *given.one("--procs"), "as many ranks as one of the machines has");

  std::vector<grid_outcome> all;
  {
    progress_line line;
    way.tell = [&](const reproduce::standing& now) { line.show(progress_of(now, line.seconds())); };
    all = reproduce::carry_out_grid(contests, length, way);
  }
  const std::string text = reproduce::to_json(all).dump(2) + "\n";
  const auto falling = static_cast<std::size_t>(
      std::count_if(all.begin(), all.end(), [](const grid_outcome& o) { return o.falls_short(); }));
  if (to == "-") {
    out.print(text);
  } else {
    print_short(out, all);
    print_medians(out, all);
    out.line(fmt::format("{} of {} fall short of {:g} times the fastest other lock", falling,
                         counted(all.size(), "cell"), which.below));
  }
  if (json) {
    json->commit(text);
    out.line("wrote " + json->path());
  }
  return falling == 0 ? 0 : 1;
}

}  // namespace

command grid_command() {
  using enum option::offer;
  return {
      .description =
          {"Runs every lock on the simulated machines with 16 to 1024 ranks, 0 to 100 % writers, "
           "and 1, 100 or 1000 locks of which 50, 90 or 100 % are on the own node. Each "
           "combination is a cell. In a cell flight-rw's throughput is compared with that of the "
           "fastest other reader-writer lock, or with that of the fastest mutex where all "
           "operations write. There flight's is compared with that of the fastest other mutex, "
           "too.",
           "It prints the cells that fall short, which are those below --below times the fastest "
           "other lock. Then it prints for each machine and share of writers the median of the "
           "cells "
           "and the least. A run of flight or flight-rw that breaks mutual exclusion, or takes "
           "more "
           "than " +
               reproduce::most_of_a_point() +
               ", has no result: its cell counts as 0 and falls short in any case. Another lock "
               "without a result is no rival there. The exit code is 1 if a cell falls short."},
      .options =
          {{.name = "--quick",
            .what = "run only 16 and 256 ranks, 1 and 100 locks, and few operations"},
           {.name = "--machine",
            .value = "NAME,...",
            .what = "the machines to simulate (default: all)",
            .completes = list_of_words,
            .known = sim::names_of_machines()},
           {.name = "--procs",
            .value = "N,...",
            .what = "the numbers of ranks, where the machine has them (default: 16,64,256,1024)"},
           {.name = "--locks",
            .value = "N,...",
            .what = "the numbers of locks (default: 1,100,1000)"},
           {.name = "--writers",
            .value = "F",
            .what = "the part of the operations that is exclusive, 0 to 1 (default: 0, 0.002, "
                    "0.02, 0.05, 0.3 and 1)"},
           {.name = "--below",
            .value = "F",
            .what = fmt::format("the factor, 0 to {:g}: a cell falls short below so many times the "
                                "throughput of the fastest other lock (default: {:g})",
                                most_below, reproduce::usual_bound)},
           {.name = "--times",
            .value = "N",
            .what =
                "run N times the operations, with N times the events that a run may take, so that "
                "beginnings count for less"},
           {.name = "--jobs",
            .value = "N",
            .what = "the number of runs at a time (default: one for each processor)"},
           {.name = "--json",
            .value = "FILE|-",
            .what = "write all cells as JSON; - prints that alone, instead of the tables",
            .completes = files}},
      .examples = {{"lockflight grid --quick", "run a part of the grid, in a few minutes"},
                   {"lockflight grid --machine piz-daint --procs 64",
                    "run one machine with one number of ranks"},
                   {"lockflight grid --writers 1 --times 5", "make longer runs of writers alone"},
                   {"lockflight grid --json grid.json", "run the whole grid, and save it"}},
      .run = run_grid,
  };
}

}  // namespace lockflight::lab
