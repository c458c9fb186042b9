#include "reproduce/claims.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <limits>
#include <regex>
#include <set>
#include <sstream>

#include "reproduce/metric.hpp"
#include "toml/strict.hpp"

namespace lockflight::reproduce {
namespace {

using nlohmann::json;

// Keys of a run, and the types of their values. The program's benchmark knows what is accepted for
// each.
enum class type : std::uint8_t { text, whole, number, yes_or_no, numbers };
struct key_of_run {
  std::string_view name;
  type is;
};
constexpr key_of_run keys_of_run[] = {
    {"machine", type::text},   {"machine_set", type::numbers}, {"lock", type::text},
    {"workload", type::text},  {"procs", type::whole},         {"levels", type::text},
    {"writers", type::number}, {"ops", type::whole},           {"seconds", type::number},
    {"set", type::numbers},    {"locks", type::whole},         {"locality", type::number},
    {"hold_us", type::number}, {"bytes", type::whole},         {"server_busy", type::yes_or_no},
    {"operation", type::text}, {"nodes", type::text},          {"server_load", type::whole},
};

std::string_view said(type t) {
  switch (t) {
    case type::text:
      return "a string";
    case type::whole:
      return "a whole number, at least 0";
    case type::number:
      return "a number";
    case type::yes_or_no:
      return "true or false";
    case type::numbers:
      return "a table of numbers";
  }
  return "";
}

using reader = strict_toml::table<bad_claims>;
using words = std::vector<std::string>;
constexpr double any = std::numeric_limits<double>::infinity();

std::string text_or_empty(reader& in, std::string_view key) {
  return in.has(key) ? in.text(key) : std::string();
}
bool is_set(reader& in, std::string_view key) { return in.has(key) && in.flag(key); }

json numbers_of(const reader& in, const toml::node& node, std::string_view key) {
  const toml::table* const table = node.as_table();
  if (table == nullptr) in.refuse(node, key, std::string(said(type::numbers)));
  json all = json::object();
  for (const auto& [name, value] : *table) {
    const std::string full = fmt::format("{}.{}", key, name.str());
    if (value.is_integer())
      all[std::string(name.str())] = *value.value<std::int64_t>();
    else if (value.is_floating_point())
      all[std::string(name.str())] = *value.value<double>();
    else
      in.refuse(value, full, std::string(said(type::number)));
  }
  return all;
}

json value_of(const reader& in, const toml::node& node, const key_of_run& key) {
  switch (key.is) {
    case type::text:
      if (node.is_string()) return *node.value<std::string>();
      break;
    case type::whole:
      if (node.is_integer() && *node.value<std::int64_t>() >= 0) return *node.value<std::int64_t>();
      break;
    case type::number:
      if (node.is_number()) return *node.value<double>();
      break;
    case type::yes_or_no:
      if (node.is_boolean()) return *node.value<bool>();
      break;
    case type::numbers:
      return numbers_of(in, node, key.name);
  }
  in.refuse(node, key.name, std::string(said(key.is)));
}

run run_of(const toml::table& table, const std::string& path, const std::string& name) {
  reader in(table, path, name);
  run made = json::object();
  for (const key_of_run& key : keys_of_run)
    if (const toml::node* const found = in.find(key.name))
      made[std::string(key.name)] = value_of(in, *found, key);
  in.finish();
  return made;
}

run whole_run_of(reader& in, const std::string& key, const std::string& path,
                 const std::string& machine) {
  const toml::table& table = in.subtable(key);
  run made = run_of(table, path, key);
  if (!made.contains("machine")) made["machine"] = machine;
  for (const char* const must : {"workload", "procs"})
    if (!made.contains(must)) in.fail(table, fmt::format("{}.{} is missing", key, must));
  return made;
}

measure measure_of(const toml::table& table, const std::string& path, const std::string& machine) {
  reader in(table, path, "measure");
  measure made;
  made.metric = in.word_of("metric", names_of_metrics());
  made.numerator = whole_run_of(in, "numerator", path, machine);
  if (in.find("denominator") != nullptr)
    made.denominator = whole_run_of(in, "denominator", path, machine);
  if (const toml::node* const sweep = in.find("sweep")) {
    const toml::array* const array = sweep->as_array();
    if (array == nullptr || array->empty()) in.refuse(*sweep, "sweep", "an array of tables");
    for (const toml::node& one : *array) {
      if (!one.is_table()) in.refuse(one, "sweep", "a table");
      made.sweep.push_back(run_of(*one.as_table(), path, "sweep"));
    }
    made.take_most = in.word_of("take", words{"max", "min"}) == "max";
    const std::string of = in.word_of("sweep_of", words{"numerator", "denominator", "both"});
    made.sweep_of = of == "both"        ? measure::side::both
                    : of == "numerator" ? measure::side::numerator
                                        : measure::side::denominator;
    if (made.sweep_of == measure::side::denominator && !made.denominator)
      in.refuse(in.needed("sweep_of"), "sweep_of", "numerator: there is no denominator");
  }
  in.finish();
  return made;
}

claim claim_of(const toml::table& table, const std::string& path, const paper& of) {
  reader in(table, path, "claim");
  claim made;
  made.paper = of.name;
  made.at = fmt::format("{}:{}", path, table.source().begin.line);
  made.id = in.text("id");
  made.where = in.text("where");
  made.what = in.text("what");
  const std::string how = in.word_of("kind", words{"ratio", "value", "direction"});
  made.how_close = how == "ratio" ? kind::ratio : how == "value" ? kind::value : kind::direction;
  if (made.how_close == kind::direction)
    made.relation = in.word_of("relation", words{">", "<"}).front();
  made.value = in.number("value", -any, any, "a number");
  if (made.value < 0) in.refuse(in.needed("value"), "value", "a number, at least 0");
  made.unit = in.word_of("unit", words{"x", "us", "ms", "s", "operations", "messages", "%"});
  made.calibrated = is_set(in, "calibrated");
  made.quick = is_set(in, "quick");
  made.note = text_or_empty(in, "note");
  made.needs = text_or_empty(in, "needs");
  if (made.needs.empty()) {
    made.how = measure_of(in.subtable("measure"), path, of.machine);
    const bool divides = made.how->denominator || is_quotient(made.how->metric);
    if (made.how_close == kind::value && made.how->denominator)
      in.refuse(in.needed("kind"), "kind", "ratio or direction: there is a denominator");
    if (made.how_close == kind::ratio && !divides)
      in.refuse(in.needed("kind"), "kind", "value: there is no denominator");
    if (made.how_close == kind::value && !fits(made.how->metric, made.unit))
      in.refuse(in.needed("unit"), "unit", "a unit of the metric");
  } else if (in.find("measure") != nullptr) {
    in.fail(in.needed("needs"), "claim.needs (accepted: needs or measure, not both)");
  }
  in.finish();
  return made;
}

}  // namespace

std::string_view to_string(kind what) {
  switch (what) {
    case kind::ratio:
      return "ratio";
    case kind::value:
      return "value";
    case kind::direction:
      return "direction";
  }
  return "";
}

std::string figure_of(const claim& c) {
  static const std::regex named("(figure|table)s? ([0-9]+[a-z]?( and [0-9]+)?)");
  std::smatch found;
  if (!std::regex_search(c.where, found, named)) return "text";
  return found[3].matched ? fmt::format("{}s {}", found.str(1), found.str(2))
                          : fmt::format("{} {}", found.str(1), found.str(2));
}

paper parse_claims(std::string_view text, const std::string& path) {
  const toml::table root = strict_toml::parsed<bad_claims>(text, path);
  reader in(root, path);
  paper made;
  made.name = in.text("paper");
  made.title = in.text("title");
  made.machine = in.text("machine");
  const toml::node& claims = in.needed("claim");
  const toml::array* const array = claims.as_array();
  if (array == nullptr) in.refuse(claims, "claim", "tables, each headed [[claim]]");
  std::set<std::string> ids;
  for (const toml::node& one : *array) {
    if (!one.is_table()) in.refuse(one, "claim", "a table");
    made.claims.push_back(claim_of(*one.as_table(), path, made));
    if (!ids.insert(made.claims.back().id).second)
      in.fail(*one.as_table()->get("id"),
              fmt::format("claim.id '{}' (accepted: one that no other claim has)",
                          made.claims.back().id));
  }
  in.finish();
  return made;
}

std::vector<std::string> names_of_papers() {
  std::vector<std::string> names;
  for (const built_in_claims& c : all_built_in_claims()) names.emplace_back(c.name);
  return names;
}

std::vector<paper> find_papers(const std::string& name_or_path) {
  std::vector<paper> found;
  for (const built_in_claims& c : all_built_in_claims())
    if (name_or_path == "all" || name_or_path == c.name)
      found.push_back(parse_claims(c.text, fmt::format("claims/{}.toml", c.name)));
  if (!found.empty()) return found;
  std::ifstream in(name_or_path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  if (!in.is_open() || in.bad())
    throw bad_claims(fmt::format("PAPER '{}' (accepted: all, {}, or a claim file)", name_or_path,
                                 fmt::join(names_of_papers(), ", ")));
  found.push_back(parse_claims(text, name_or_path));
  return found;
}

}  // namespace lockflight::reproduce
