#include "lab/reproduce/read_figure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <regex>

#include "lab/reproduce/metric.hpp"

namespace lockflight::reproduce {
namespace {

using nlohmann::json;
using words = std::vector<std::string>;

figure::scale scale_of(reader& in, std::string_view key) {
  if (!in.has(key)) return figure::scale::linear;
  return in.word_of(key, words{"linear", "logarithmic"}) == "linear" ? figure::scale::linear
                                                                     : figure::scale::logarithmic;
}

/// The tables of an array; each is given to `read`.
template <class Read>
void for_each_table(const reader& in, const toml::node& node, std::string_view key, Read read) {
  const toml::array* const array = node.as_array();
  if (array == nullptr || array->empty()) in.refuse(node, key, "an array of tables");
  for (const toml::node& one : *array) {
    if (!one.is_table()) in.refuse(one, key, "a table");
    read(*one.as_table());
  }
}

json x_of(reader& in) {
  const toml::node& found = in.needed("x");
  if (found.is_string()) return *found.value<std::string>();
  if (found.is_number() && std::isfinite(*found.value<double>())) return *found.value<double>();
  in.refuse(found, "x", "a number or a string");
}

/// x_of, on the axis of a figure.
json x_of(reader& in, const figure& of) {
  const json x = x_of(in);
  if (of.x_scale == figure::scale::logarithmic && x.is_number() && x.get<double>() <= 0)
    in.refuse(in.needed("x"), "x", "a number above 0 on a logarithmic axis");
  return x;
}

figure::point point_of(const toml::table& table, const std::string& path, const figure& of) {
  reader in(table, path, "points");
  figure::point made;
  made.x = x_of(in, of);
  made.with = run_of(table, path, "points", "x");
  return made;
}

figure::curve curve_of(const toml::table& table, const std::string& path, const figure& of,
                       const run& common, const std::string& machine) {
  reader in(table, path, "curves");
  figure::curve made;
  made.name = line_of_text(in, "name");
  if (std::any_of(of.curves.begin(), of.curves.end(),
                  [&](const figure::curve& c) { return c.name == made.name; }))
    in.refuse(in.needed("name"), "name", "one that no other curve of the figure has");
  made.metric = in.has("metric") ? in.word_of("metric", names_of_metrics()) : of.metric;
  if (made.metric != of.metric && (of.points.empty() || !fits_figure(made.metric, of.unit)))
    in.refuse(in.needed("metric"), "metric", "a metric of the figure's unit");
  const toml::table& settings = in.subtable("run");
  const run own = run_of(settings, path, "run");
  const auto add = [&](const run* point) {
    run whole = common;
    if (point != nullptr) whole.update(*point);
    whole.update(own);
    complete(whole, machine, in, settings, "run");
    made.runs.push_back(std::move(whole));
  };
  if (of.points.empty()) add(nullptr);
  for (const figure::point& p : of.points) add(&p.with);
  in.finish();
  return made;
}

printed_point printed_of(const toml::table& table, const std::string& path, const figure& of) {
  constexpr double any = std::numeric_limits<double>::max();
  reader in(table, path, "paper");
  printed_point made;
  made.curve = in.text("curve");
  if (std::none_of(of.curves.begin(), of.curves.end(),
                   [&](const figure::curve& c) { return c.name == made.curve; }))
    in.refuse(in.needed("curve"), "curve", "the name of one of the figure's curves");
  made.x = x_of(in, of);
  made.y = in.number("y", -any, any, "a number");
  if (of.y_scale == figure::scale::logarithmic && made.y <= 0)
    in.refuse(in.needed("y"), "y", "a number above 0 on a logarithmic axis");
  made.said = in.text("said");
  in.finish();
  return made;
}

}  // namespace

figure read_figure(const toml::table& table, const std::string& path, const paper& of) {
  reader in(table, path, "figure");
  figure made;
  made.paper = of.name;
  made.at = fmt::format("{}:{}", path, table.source().begin.line);
  made.name = in.text("figure");
  static const std::regex numbered("figure [0-9]+");
  if (!std::regex_match(made.name, numbered))
    in.refuse(in.needed("figure"), "figure", "figure and its number, as figure 3");
  made.panel = text_or_empty(in, "panel");
  if (std::any_of(of.figures.begin(), of.figures.end(),
                  [&](const figure& f) { return f.name == made.name && f.panel == made.panel; }))
    in.refuse(in.needed("figure"), "figure", "a figure and panel that the file has once");
  made.title = line_of_text(in, "title");
  made.metric = in.word_of("metric", names_of_figure_metrics());
  made.unit = in.word_of("unit", units_of_figures());
  if (!fits_figure(made.metric, made.unit))
    in.refuse(in.needed("unit"), "unit", "a unit of the metric");
  made.x_label = in.text("x");
  made.x_scale = scale_of(in, "x_scale");
  made.y_scale = scale_of(in, "y_scale");
  made.note = text_or_empty(in, "note");
  run common = json::object();
  if (in.find("common") != nullptr) common = run_of(in.subtable("common"), path, "common");
  if (const toml::node* const points = in.find("points")) {
    if (is_distribution(made.metric))
      in.refuse(*points, "points", "none: a distribution has a run for each curve");
    for_each_table(in, *points, "points", [&](const toml::table& one) {
      made.points.push_back(point_of(one, path, made));
    });
  } else if (!is_distribution(made.metric)) {
    in.fail(table, "figure.points is missing");
  }
  for_each_table(in, in.needed("curves"), "curves", [&](const toml::table& one) {
    made.curves.push_back(curve_of(one, path, made, common, of.machine));
  });
  if (const toml::node* const printed = in.find("paper"))
    for_each_table(in, *printed, "paper", [&](const toml::table& one) {
      made.printed.push_back(printed_of(one, path, made));
    });
  in.finish();
  return made;
}

}  // namespace lockflight::reproduce
