// lockflight locks: the list of locks.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/lock_table.hpp"
#include "tool/table.hpp"
#include "tool/text.hpp"

namespace lockflight::cli {
namespace {

using nlohmann::ordered_json;

ordered_json parameter_json(const catalogue::parameter_row& p) {
  return {
      {"name", p.name}, {"default", p.default_value}, {"min", p.min}, {"max", p.max},
      {"what", p.what},
  };
}

ordered_json lock_json(const lock_row& row) {
  ordered_json parameters = ordered_json::array();
  for (const auto& p : row.parameters) parameters.push_back(parameter_json(p));
  return {
      {"name", row.about.name},
      {"kind", lock::to_string(row.about.what)},
      {"source", row.about.source},
      {"fabrics", row.fabrics},
      {"parameters", parameters},
      {"bytes_home", row.about.bytes_home},
      {"bytes_home_per_rank", row.about.bytes_home_per_rank},
      {"bytes_per_node", row.about.bytes_per_node},
      {"bytes_per_node_most", row.about.bytes_per_node + row.about.bytes_of_counters},
      {"bytes_per_participant", row.about.bytes_per_participant},
  };
}

void print_json(console& out) {
  ordered_json locks = ordered_json::array();
  for (const auto& row : lock_table()) locks.push_back(lock_json(row));
  out.line(ordered_json{{"locks", locks}}.dump(2));
}

/// "8", or "8+8P" for a lock that takes 8 more for each of P ranks.
std::string bytes_home(const lock::facts& about) {
  if (about.bytes_home_per_rank == 0) return fmt::to_string(about.bytes_home);
  return fmt::format("{}+{}P", about.bytes_home, about.bytes_home_per_rank);
}

/// "56", or "56..2104" for a lock that takes more where a node has many ranks.
std::string bytes_per_node(const lock::facts& about) {
  if (about.bytes_of_counters == 0) return fmt::to_string(about.bytes_per_node);
  return fmt::format("{}..{}", about.bytes_per_node,
                     about.bytes_per_node + about.bytes_of_counters);
}

/// The facts in columns; `details` below each row.
void print_lock(console& out, const lock_row& row, int name_columns) {
  const lock::facts& about = row.about;
  const std::string name = fmt::format("{:<{}}", about.name, name_columns);
  out.print(out.paint(style::heading, name));
  out.line(fmt::format("  {:<5}  {:<7}  {:>4}  {:>8}  {:>11}", lock::to_string(about.what),
                       joined(row.fabrics, ","), bytes_home(about), bytes_per_node(about),
                       about.bytes_per_participant));
  const int width = out.width() == 0 ? 100 : std::min(out.width(), 100);
  out.print(wrapped(std::string(about.source), width, 4));
  std::vector<labelled> parameters;
  for (const auto& p : row.parameters)
    parameters.push_back({fmt::format("{}={}", p.name, p.default_value),
                          fmt::format("{} ({} to {})", p.what, p.min, p.max)});
  out.print(two_columns(parameters, width, 4));
}

void print_table(console& out) {
  int name_columns = 0;
  for (const auto& row : lock_table())
    name_columns = std::max(name_columns, columns_of(row.about.name));
  const std::string titles =
      fmt::format("{:<{}}  {:<5}  {:<7}  {:>4}  {:>8}  {:>11}", "lock", name_columns, "kind",
                  "fabrics", "home", "node", "participant");
  out.line(out.paint(style::heading, titles));
  for (const auto& row : lock_table()) {
    out.line();
    print_lock(out, row, name_columns);
  }
  out.line();
  out.line(
      "Memory is in bytes: of a lock at its home and on each node (the second figure: at most,");
  out.line("where a node has many ranks), and of a participant for all its locks.");
  out.line("Set a parameter with 'lockflight bench --set NAME=VALUE'.");
}

int run_locks(const arguments& given, console& out) {
  if (given.has("--json"))
    print_json(out);
  else
    print_table(out);
  return 0;
}

}  // namespace

command locks_command() {
  return {
      .description =
          {"Lists every lock: its name, whether it is a mutex or a reader-writer lock (rw), the "
           "fabrics on which it runs, how much memory it takes, its source, and its parameters "
           "with their defaults and ranges."},
      .options = {{.name = "--json", .what = "print one JSON document instead of the table"}},
      .examples = {{"lockflight locks", "list all locks"},
                   {"lockflight locks --json | jq -r '.locks[].name'", "print only the names"}},
      .run = run_locks,
  };
}

}  // namespace lockflight::cli
