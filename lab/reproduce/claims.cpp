#include "lab/reproduce/claims.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <regex>
#include <set>
#include <sstream>
#include <system_error>

#include "base/whole_file.hpp"
#include "lab/reproduce/metric.hpp"
#include "lab/reproduce/read_figure.hpp"
#include "lab/reproduce/read_run.hpp"

namespace lockflight::reproduce {
namespace {

using words = std::vector<std::string>;
constexpr double any = std::numeric_limits<double>::max();  // infinity is no number here
constexpr std::size_t most_bytes_of_claims = std::size_t{1} << 24;

bool is_set(reader& in, std::string_view key) { return in.has(key) && in.flag(key); }

run whole_run_of(reader& in, const std::string& key, const std::string& path,
                 const std::string& machine) {
  const toml::table& table = in.subtable(key);
  run made = run_of(table, path, key);
  complete(made, machine, in, table, key);
  return made;
}

// The names of quotient::taking and of cause, in their order.
const words takings{"max", "min", "max/min"};
const words causes{"model", "lock", "workload", "paper"};

template <class Enum>
Enum one_of(reader& in, std::string_view key, const words& names) {
  const std::string found = in.word_of(key, names);
  return static_cast<Enum>(std::find(names.begin(), names.end(), found) - names.begin());
}

quotient quotient_of(reader& in, const std::string& path, const std::string& machine) {
  quotient made;
  made.numerator = whole_run_of(in, "numerator", path, machine);
  if (in.find("denominator") != nullptr)
    made.denominator = whole_run_of(in, "denominator", path, machine);
  if (in.find("less") != nullptr) made.less = whole_run_of(in, "less", path, machine);
  if (made.less && made.denominator)
    in.refuse(in.needed("less"), "less", "instead of a denominator, not with one");
  if (const toml::node* const sweep = in.find("sweep")) {
    if (made.less) in.refuse(in.needed("less"), "less", "without a sweep");
    const toml::array* const array = sweep->as_array();
    if (array == nullptr || array->empty()) in.refuse(*sweep, "sweep", "an array of tables");
    for (const toml::node& one : *array) {
      if (!one.is_table()) in.refuse(one, "sweep", "a table");
      made.sweep.push_back(run_of(*one.as_table(), path, "sweep"));
    }
    made.take = one_of<quotient::taking>(in, "take", takings);
    made.sweep_of =
        one_of<quotient::side>(in, "sweep_of", words{"numerator", "denominator", "both"});
    if (made.sweep_of == quotient::side::denominator && !made.denominator)
      in.refuse(in.needed("sweep_of"), "sweep_of", "numerator: there is no denominator");
  }
  return made;
}

measure measure_of(const toml::table& table, const std::string& path, const std::string& machine) {
  reader in(table, path, "measure");
  measure made;
  made.metric = in.word_of("metric", names_of_metrics());
  made.of = quotient_of(in, path, machine);
  if (is_of_two_runs(made.metric) && !made.of.denominator)
    in.refuse(in.needed("metric"), "metric", "another one: there is no denominator");
  if (in.find("relative_to") != nullptr) {
    reader inner(in.subtable("relative_to"), path, "relative_to");
    made.relative_to = quotient_of(inner, path, machine);
    inner.finish();
    if (made.relative_to->denominator.has_value() != made.of.denominator.has_value())
      in.refuse(in.needed("relative_to"), "relative_to",
                made.of.denominator ? "one with a denominator, as the measure has it"
                                    : "one without a denominator, as the measure has it");
    if (made.relative_to->less.has_value() != made.of.less.has_value())
      in.refuse(in.needed("relative_to"), "relative_to",
                made.of.less ? "one with less, as the measure has it"
                             : "one without less, as the measure has it");
  }
  in.finish();
  return made;
}

/// True if a measure divides a number of runs by one of the same kind. Then it has no unit.
bool divides(const measure& how) {
  return how.of.denominator || how.relative_to || how.of.take == quotient::taking::spread;
}

claim claim_of(const toml::table& table, const std::string& path, const paper& of) {
  reader in(table, path, "claim");
  claim made;
  made.paper = of.name;
  made.at = fmt::format("{}:{}", path, table.source().begin.line);
  made.id = line_of_text(in, "id");
  made.where = line_of_text(in, "where");
  made.what = line_of_text(in, "what");
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
  made.missed = text_or_empty(in, "missed");
  if (!made.missed.empty())
    made.because = one_of<cause>(in, "cause", causes);
  else if (const toml::node* const why = in.find("cause"))
    in.fail(*why, "claim.cause (accepted: only together with missed)");
  made.needs = text_or_empty(in, "needs");
  if (made.needs.empty()) {
    made.how = measure_of(in.subtable("measure"), path, of.machine);
    if (made.how_close == kind::value && divides(*made.how))
      in.refuse(in.needed("kind"), "kind", "ratio or direction: there is a denominator");
    const bool is_ratio =
        divides(*made.how) || (is_quotient(made.how->metric) && !made.how->of.less);
    if (made.how_close == kind::ratio && !is_ratio)
      in.refuse(in.needed("kind"), "kind", "value or direction: there is no denominator");
    if (divides(*made.how) && made.unit != "x")
      in.refuse(in.needed("unit"), "unit", "x: a quotient has no unit");
    if (!divides(*made.how) && !fits(made.how->metric, made.unit))
      in.refuse(in.needed("unit"), "unit", std::string(units_of(made.how->metric)));
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

std::string_view to_string(cause why) { return causes.at(static_cast<std::size_t>(why)); }

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
  made.name = line_of_text(in, "paper");
  made.title = line_of_text(in, "title");
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
  if (const toml::node* const figures = in.find("figure")) {
    const toml::array* const tables = figures->as_array();
    if (tables == nullptr) in.refuse(*figures, "figure", "tables, each headed [[figure]]");
    for (const toml::node& one : *tables) {
      if (!one.is_table()) in.refuse(one, "figure", "a table");
      made.figures.push_back(read_figure(*one.as_table(), path, made));
    }
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
      found.push_back(parse_claims(c.text, fmt::format("lab/claims/{}.toml", c.name)));
  if (!found.empty()) return found;
  const auto text = [&] {
    try {
      return whole_file(name_or_path, most_bytes_of_claims);
    } catch (const std::system_error& e) {
      throw bad_claims(fmt::format("PAPER '{}' (accepted: all, {}, or a claim file: {})",
                                   name_or_path, fmt::join(names_of_papers(), ", "),
                                   e.code().message()));
    }
  };
  found.push_back(parse_claims(text(), name_or_path));
  return found;
}

}  // namespace lockflight::reproduce
