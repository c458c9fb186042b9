#include "lab/check/trace.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/joined.hpp"

namespace lockflight::check {
namespace {

[[nodiscard]] std::string note_of(stage before, stage after) {
  if (before == after) return "";
  switch (after) {
    case stage::outside:
      return "has left";
    case stage::acquiring:
      return before == stage::releasing ? "has left, comes again" : "comes";
    case stage::waiting:
      return "waits";
    case stage::giving_up:
      return "gives up";
    case stage::inside:
      return "ENTERS";
    case stage::inside_shared:
      return "ENTERS shared";
    case stage::releasing:
      return "releases";
  }
  return "";
}

[[nodiscard]] const char* name_of(part p) {
  return std::find_if(part_rows.begin(), part_rows.end(),
                      [p](const part_row& row) { return row.what == p; })
      ->does;
}

[[nodiscard]] const char* name_of(verdict v) {
  switch (v) {
    case verdict::ok:
      return "ok";
    case verdict::violation:
      return "violation";
    case verdict::bound:
      return "bound";
  }
  return "";
}

[[nodiscard]] std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(width, text.size()), ' ');
  return text;
}

// The text in a participant's column at a step; the cells that changed have a column of their own.
[[nodiscard]] std::string column_text(const trace_row& row) {
  return row.note.empty() ? row.what : row.what + "  [" + row.note + "]";
}

}  // namespace

std::vector<trace_row> trace_of(engine& e, const std::vector<step>& schedule) {
  std::vector<trace_row> rows;
  e.start();
  for (const step s : schedule) {
    trace_row row{static_cast<int>(rows.size()) + 1, s.fiber, e.describe(s), "", ""};
    const cell_id cell = e.written_by(s);
    const word old_value = cell != no_cell ? e.value(cell) : 0;
    const stage before = e.where(s.fiber);
    e.take(s);
    if (cell != no_cell && e.value(cell) != old_value)
      row.changed =
          e.cell_name(cell) + ": " + e.value_name(old_value) + " -> " + e.value_name(e.value(cell));
    if (s.what != step::kind::death && s.what != step::kind::stop)
      row.note = note_of(before, e.where(s.fiber));
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string trace_table(const report& of) {
  if (of.trace.empty()) return "";
  const std::size_t ranks = of.parts.size();
  std::vector<std::string> heads;
  for (std::size_t r = 0; r < ranks; ++r)
    heads.push_back("rank " + std::to_string(r) + " (" + name_of(of.parts[r]) + ")");
  std::vector<std::size_t> width;
  for (const std::string& head : heads) width.push_back(head.size());
  for (const trace_row& row : of.trace) {
    std::size_t& w = width[static_cast<std::size_t>(row.rank)];
    w = std::max(w, column_text(row).size());
  }
  std::string text = "step  ";
  for (std::size_t r = 0; r < ranks; ++r) text += padded(heads[r], width[r] + 2);
  text += "memory\n";
  for (const trace_row& row : of.trace) {
    if (of.found.repeats > 0 &&
        static_cast<std::size_t>(row.number) + of.found.repeats == of.trace.size() + 1)
      text += "again and again:\n";
    text += padded(std::to_string(row.number), 6);
    for (std::size_t r = 0; r < ranks; ++r)
      text += padded(static_cast<std::size_t>(row.rank) == r ? column_text(row) : "", width[r] + 2);
    text += row.changed;
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
  }
  if (of.found.broken)
    text += "broken: " + of.found.broken->property + ": " + of.found.broken->detail + "\n";
  return text;
}

std::string describe_parts(const report& of) {
  const request& r = of.asked;
  std::vector<std::string> parts;
  const auto add = [&](int count, const char* one, const char* many) {
    if (count != 0) parts.push_back(std::to_string(count) + " " + (count == 1 ? one : many));
  };
  for (const part_row& row : part_rows) add(r.*row.count, row.one, row.many);
  if (r.starvation != watched::nobody) {
    parts.emplace_back("any number of rounds");
    return joined(parts);
  }
  add(r.rounds, "round", "rounds");
  add(r.how.deaths, "death at most", "deaths at most");
  add(r.how.stops, "stop at most", "stops at most");
  return joined(parts);
}

nlohmann::json to_json(const report& of) {
  nlohmann::json trace = nlohmann::json::array();
  for (const trace_row& row : of.trace)
    trace.push_back({{"step", row.number},
                     {"rank", row.rank},
                     {"what", row.what},
                     {"changed", row.changed},
                     {"note", row.note}});
  const outcome& found = of.found;
  nlohmann::json json{{"lock", of.asked.lock},
                      {"verdict", name_of(found.what)},
                      {"executions", found.executions},
                      {"states", found.states},
                      {"seconds", found.seconds},
                      {"property", nullptr},
                      {"trace", std::move(trace)},
                      {"transitions", found.transitions},
                      {"cut", found.cut},
                      {"levels", of.levels},
                      {"writers", of.asked.writers},
                      {"readers", of.asked.readers},
                      {"rounds", of.asked.rounds}};
  if (of.asked.how.memory == memory_kind::views) json["memory"] = "views";
  if (of.asked.how.deaths > 0) json["deaths"] = of.asked.how.deaths;
  if (of.asked.how.stops > 0) json["stops"] = of.asked.how.stops;
  if (of.asked.starvation != watched::nobody) {
    json.erase("rounds");
    json["starvation"] = name_of(of.asked.starvation);
    json["repeats"] = found.repeats;
  }
  if (found.broken) {
    json["property"] = found.broken->property;
    json["detail"] = found.broken->detail;
    json["replay"] = of.replay;
  }
  return json;
}

}  // namespace lockflight::check
