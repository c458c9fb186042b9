// lockflight topo: the levels of the machine, and where locks put their words on it.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "cli/machine.hpp"
#include "lockflight/fabric/shm.hpp"
#include "lockflight/lock/flight_rw.hpp"
#include "lockflight/lock/window/window_locks.hpp"
#include "lockflight/lock/window/window_memory.hpp"
#include "tool/table.hpp"
#include "tool/text.hpp"
#include "tool/usage.hpp"
#include "tool/values.hpp"

namespace lockflight::cli {
namespace {

/// The most elements that are shown: of many equal ones the first few and the last are enough.
constexpr int most_shown = 8;
constexpr int shown_first = 3;

class tree_printer {
 public:
  tree_printer(console& out, const machine_view& view)
      : out_(out), view_(view), tree_(columns(view)) {}

  void print() {
    collect(1, 0, "", "");
    tree_.print(out_);
  }

 private:
  [[nodiscard]] static std::vector<table_column> columns(const machine_view& view) {
    std::vector<table_column> all{{.title = "element", .numeric = false},
                                  {.title = "ranks", .numeric = false},
                                  {.title = "tail at", .numeric = false},
                                  {.title = "counters at", .numeric = false}};
    if (view.knows_processors()) all.push_back({.title = "processors", .numeric = false});
    return all;
  }

  void collect(int level, int element, const std::string& branch, const std::string& below) {
    const std::string number = level == 1 ? "" : fmt::format(" {}", element);
    add_row(branch + view_.name(level) + number, level, element);
    if (level == view_.machine.levels()) return;
    const std::vector<int> children = view_.children(level, element);
    const int count = static_cast<int>(children.size());
    for (int i = 0; i < count; ++i) {
      if (count > most_shown && i == shown_first) {
        add_words(fmt::format("{}├─ … {} more", below, count - shown_first - 1));
        i = count - 1;
      }
      const bool last = i == count - 1;
      collect(level + 1, children[static_cast<std::size_t>(i)], below + (last ? "└─ " : "├─ "),
              below + (last ? "   " : "│  "));
    }
  }

  void add_words(const std::string& words) {
    std::vector<table_cell> row(columns(view_).size());
    row.front().text = words;
    tree_.add_row(std::move(row));
  }

  void add_row(const std::string& name, int level, int element) {
    const bool is_node = level == view_.machine.node_level();
    std::vector<table_cell> row{
        {name},
        {ranges(view_.ranks_of(level, element))},
        {std::to_string(view_.machine.leader(level, element))},
        {is_node ? ranges(view_.counters_of(element)) : ""},
    };
    if (view_.knows_processors()) row.push_back({ranges(view_.processors_of(level, element))});
    tree_.add_row(std::move(row));
  }

  console& out_;
  const machine_view& view_;
  table tree_;
};

void print_levels(console& out, const machine_view& view) {
  table levels({{.title = "level"},
                {.title = "name", .numeric = false},
                {.title = "elements"},
                {.title = "ranks in each"},
                {.title = "", .numeric = false}});
  for (int level = 1; level <= view.machine.levels(); ++level) {
    const bool is_node = level == view.machine.node_level();
    levels.add_row({{std::to_string(level)},
                    {view.name(level)},
                    {std::to_string(view.machine.elements(level))},
                    {view.ranks_in_each(level)},
                    {is_node ? "the nodes: ranks that share memory" : ""}});
  }
  levels.print(out);
}

void print_text(console& out, const machine_view& view) {
  const rma::topology& machine = view.machine;
  out.line(fmt::format("{} on {}, {}: {}",
                       counted(static_cast<std::size_t>(machine.ranks()), "rank"),
                       counted(static_cast<std::size_t>(machine.nodes()), "node"),
                       counted(static_cast<std::size_t>(machine.levels()), "level"),
                       view.from_hwloc ? "what hwloc finds here" : "as --levels says"));
  out.line();
  print_levels(out, view);
  out.line();
  tree_printer(out, view).print();
  out.line();
  out.line("tail: the rank that hosts the element's queue in rma-mcs and rma-rw (lock at rank 0)");
  out.line("counters: the ranks that count readers in rma-rw, with its default T_DC");
}

// ---- the memory of an MPI window ----

constexpr int ranks_of_node = 128;
constexpr int most_ranks = 1 << 20;

struct window_row {
  int ranks;
  int nodes;
  lock::window_memory used;
};

/// The memory of the drop-in's default lock, with the words beside it (mpi_preload/scheme.hpp).
window_row window_of(int ranks) {
  using layout = lock::window_layout<lock::flight_rw, lock::window_groups<shm::port>>;
  constexpr std::uint32_t words_of_observers = 2 * rma::line_words;
  std::vector<int> root(static_cast<std::size_t>(ranks), 0);
  std::vector<int> node_of;
  for (int r = 0; r < ranks; ++r) node_of.push_back(r / ranks_of_node);
  const rma::topology machine({std::move(root), std::move(node_of)}, 2);
  rma::layout in(UINT32_MAX);
  return {ranks, machine.nodes(), layout(in, machine, {}).memory(machine, words_of_observers)};
}

int run_window(const std::string& text, bool json, console& out) {
  const std::vector<int> all = whole_numbers("--window", text, 1, most_ranks);
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  table shown({{.title = "ranks"},
               {.title = "nodes"},
               {.title = "bytes on first ranks"},
               {.title = "a target"},
               {.title = "bytes on others"}});
  for (const int ranks : all) {
    const auto [n, nodes, used] = window_of(ranks);
    const double a_target = static_cast<double>(used.on_first_ranks()) / ranks;
    rows.push_back({{"ranks", n},
                    {"nodes", nodes},
                    {"bytes_on_first_ranks", used.on_first_ranks()},
                    {"bytes_on_others", used.on_others()}});
    shown.add_row({{std::to_string(n)},
                   {std::to_string(nodes)},
                   {std::to_string(used.on_first_ranks())},
                   {fmt::format("{:.1f}", a_target)},
                   {std::to_string(used.on_others())}});
  }
  if (json) {
    out.line(nlohmann::ordered_json{{"ranks_of_node", ranks_of_node}, {"windows", rows}}.dump(2));
    return 0;
  }
  out.line(fmt::format("an MPI window under the drop-in, its default lock, {} ranks a node",
                       ranks_of_node));
  out.line();
  shown.print(out);
  out.line();
  out.line(
      "first ranks: of each node, which has a line for each target; others: the rest, whatever");
  out.line(
      "the number of targets. Beyond that 16 bytes a rank for all windows of one group together,");
  out.line("and in each process pages of a table with 10 bytes a target, where it locks");
  return 0;
}

int run_topo(const arguments& given, console& out) {
  if (const auto window = given.one("--window")) {
    for (const char* other : {"--levels", "--procs", "--node-level"})
      if (given.has(other))
        throw usage_error(std::string("--window does not go with ") + other +
                          " (accepted: --window RANKS[,RANKS…] [--json])");
    return run_window(*window, given.has("--json"), out);
  }
  const machine_view view =
      look_at_machine(given.one("--levels"), given.one("--procs"), given.one("--node-level"));
  if (given.has("--json"))
    out.line(machine_json(view).dump(2));
  else
    print_text(out, view);
  return 0;
}

}  // namespace

command topo_command() {
  return {
      .description =
          {"Shows the machine as the locks see it: a tree of elements, of which level 1 is the "
           "whole machine. Without --levels the tree is what hwloc finds: packages, NUMA nodes "
           "and caches that tell processors apart. All of them are on one node, since the machine "
           "is coherent.",
           "Beside each element are its ranks, the processors on which they run, and the rank that "
           "hosts the tail of its queue. A node also has the ranks that host reader counters."},
      .options =
          {{.name = "--levels",
            .value = "AxB[xC]",
            .what = "show a balanced tree instead: 2x4 is 2 elements of 4 ranks below the machine"},
           {.name = "--procs",
            .value = "N",
            .what = "the number of ranks (default: the product of --levels, or one for each "
                    "processor)"},
           {.name = "--node-level",
            .value = "I",
            .what = "the level whose elements are the nodes (default: the smallest of --levels, "
                    "or the machine)"},
           {.name = "--window",
            .value = "RANKS",
            .what = "show instead the memory that an MPI window of so many ranks takes under the "
                    "drop-in, with 128 ranks on a node; several numbers are joined by commas"},
           {.name = "--json", .what = "print one JSON document instead of the text"}},
      .examples = {{"lockflight topo", "show this machine, with one rank on each processor"},
                   {"lockflight topo --levels 2x2x4", "show 2 racks of 2 nodes of 4 ranks"},
                   {"lockflight topo --levels 2x2x4 --node-level 2",
                    "show the same ranks on 2 nodes of 8"},
                   {"lockflight topo --window 1024,16384,262144",
                    "show what windows of these sizes take"}},
      .run = run_topo,
  };
}

}  // namespace lockflight::cli
