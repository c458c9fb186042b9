// lockflight grid: where flight and flight-rw fall short of another lock.
#include "reproduce/grid.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "cli/command.hpp"
#include "cli/console.hpp"
#include "cli/output_file.hpp"
#include "cli/table.hpp"
#include "cli/text.hpp"
#include "cli/usage.hpp"
#include "cli/values.hpp"
#include "reproduce/reproduce.hpp"
#include "sim/machine.hpp"

namespace lockflight::cli {
namespace {

using reproduce::grid_outcome;

constexpr int most_ranks = 65'536;
constexpr int most_locks = 10'000;
constexpr int most_times = 1'000;

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
               {.title = "ratio"},
               {.title = "bound", .importance = 1}});
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
                   {o.why.empty() ? rounded(o.ratio()) : one_line(o.why), style::bad},
                   {fmt::format("{:g}", o.of.bound)}});
  }
  if (!any) return;
  static_cast<void>(shown.print(out));
  out.line();
}

// For each machine and share of writers: how many cells reach the bound, and the least ratio.
void print_summary(console& out, const std::vector<grid_outcome>& all) {
  struct part {
    int cells = 0;
    int reached = 0;
    double least = 0;
  };
  std::map<std::pair<std::string, double>, std::map<std::string, part>> parts;
  std::vector<std::pair<std::string, double>> order;
  for (const grid_outcome& o : all) {
    const std::pair key{o.of.in.machine, o.of.in.writers};
    if (!parts.contains(key)) order.push_back(key);
    part& p = parts[key][o.of.lock];
    if (p.cells == 0 || o.ratio() < p.least) p.least = o.ratio();
    ++p.cells;
    p.reached += o.falls_short() ? 0 : 1;
  }
  table shown({{.title = "machine", .numeric = false},
               {.title = "writers", .numeric = false},
               {.title = "flight"},
               {.title = "least ratio"},
               {.title = "flight-rw"},
               {.title = "least ratio"}});
  for (const auto& key : order) {
    std::vector<table_cell> row{{key.first}, {reproduce::said_of_writers(key.second)}};
    for (const char* const lock : {"flight", "flight-rw"}) {
      const auto at = parts[key].find(lock);
      if (at == parts[key].end()) {
        row.insert(row.end(), {{""}, {""}});
        continue;
      }
      const part& p = at->second;
      row.push_back({fmt::format("{} of {}", p.reached, p.cells),
                     p.reached == p.cells ? style::good : style::bad});
      row.push_back({rounded(p.least)});
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
    print_summary(out, all);
    out.line(fmt::format("{} of {} fall short", falling, counted(all.size(), "cell")));
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
      .name = "grid",
      .summary = "where flight and flight-rw fall short of another lock",
      .description =
          {"Runs every lock on the simulated machines with 16 to 1024 ranks, 0 to 100 % writers, "
           "and 1, 100 or 1000 locks of which 50, 90 or 100 % are on the own node. flight-rw must "
           "have at least 0.95 times the throughput of the fastest other reader-writer lock, 5 "
           "times with 0.2 % writers and 1024 ranks, and where all write 0.95 times that of the "
           "fastest mutex; flight 0.95 times that of the fastest other mutex.",
           "Cells that fall short are printed, then for each machine and share of writers how many "
           "do not. The exit code is 1 if any does. A lock whose run takes more than " +
               reproduce::most_of_a_point() + " has no result: it is no rival there."},
      .options =
          {{.name = "--quick", .what = "16 and 256 ranks, 1 and 100 locks, and few operations"},
           {.name = "--machine",
            .value = "NAME,...",
            .what = "only these machines (default: all)",
            .completes = list_of_words,
            .known = sim::names_of_machines()},
           {.name = "--procs",
            .value = "N,...",
            .what = "so many ranks, where the machine has them (default: 16,64,256,1024)"},
           {.name = "--locks", .value = "N,...", .what = "so many locks (default: 1,100,1000)"},
           {.name = "--writers",
            .value = "F",
            .what = "only with this part of the operations exclusive, 0 to 1 (default: 0, 0.002, "
                    "0.02, 0.05, 0.3 and 1)"},
           {.name = "--times",
            .value = "N",
            .what =
                "so many times the operations, and events that a run may take, so that beginnings "
                "count for less"},
           {.name = "--jobs",
            .value = "N",
            .what = "so many runs at a time (default: one for each processor)"},
           {.name = "--json",
            .value = "FILE|-",
            .what = "write all cells as JSON; - prints that alone, instead of the tables",
            .completes = files}},
      .examples = {{"lockflight grid --quick", "a part of it, in a few minutes"},
                   {"lockflight grid --machine piz-daint --procs 64",
                    "one machine with one number of ranks"},
                   {"lockflight grid --writers 1 --times 5", "longer runs of writers alone"},
                   {"lockflight grid --json grid.json", "all of it"}},
      .run = run_grid,
  };
}

}  // namespace lockflight::cli
