#include "lab/reproduce/reproduce.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lab/reproduce/metric.hpp"
#include "lab/reproduce/pool.hpp"
#include "lab/reproduce/runs.hpp"

namespace lockflight::reproduce {
namespace {

measured_curve measured(const curve& c, const std::map<std::string, result>& results) {
  measured_curve made{.of = c, .points = {}, .ends = ""};
  for (const run& what : c.runs) {
    const auto at = results.find(key_of(what));
    if (at == results.end()) break;
    if (!at->second.failed.empty()) {
      made.ends = at->second.failed;
      break;
    }
    made.points.push_back(at->second.run);
  }
  return made;
}

/// The fault of a run, or nothing.
std::string fault_of(const result& r) {
  if (!r.failed.empty()) return "a run failed: " + r.failed;
  if (r.run.at("violations") != 0)
    return fmt::format("a run of {} broke mutual exclusion", r.run.at("lock").get<std::string>());
  return "";
}

using results = std::map<std::string, result>;

/// A number, or why there is none.
struct measured_number {
  double value = 0;
  std::string why;
};

/// A metric of a run that was carried out.
measured_number number_of(const results& all, const run& what, const std::string& metric,
                          bool divides = false) {
  const result& got = all.at(key_of(what));
  if (std::string why = fault_of(got); !why.empty()) return {0, std::move(why)};
  const auto number = metric_of(got.run, metric, divides);
  if (!number) return {0, fmt::format("a run has no {}", metric)};
  return {*number, ""};
}

measured_number number_of(const results& all, const pair_of_runs& pair, const std::string& metric) {
  measured_number above = number_of(all, pair.numerator, metric);
  if (!above.why.empty()) return above;
  if (pair.less) {
    const measured_number other = number_of(all, *pair.less, metric);
    if (!other.why.empty()) return other;
    return {above.value - other.value, ""};
  }
  if (!pair.denominator) return above;
  const measured_number below = number_of(all, *pair.denominator, metric, true);
  if (!below.why.empty()) return below;
  if (below.value == 0) return {0, fmt::format("the denominator's {} is 0", metric)};
  return {above.value / below.value, ""};
}

measured_number number_of(const results& all, const quotient& q, const std::string& metric,
                          std::uint64_t seed) {
  std::vector<double> each;
  for (const pair_of_runs& pair : pairs_of(q, seed)) {
    measured_number one = number_of(all, pair, metric);
    if (!one.why.empty()) return one;
    each.push_back(one.value);
  }
  const auto [least, most] = std::minmax_element(each.begin(), each.end());
  switch (q.take) {
    case quotient::taking::most:
      return {*most, ""};
    case quotient::taking::least:
      return {*least, ""};
    case quotient::taking::spread:
      if (*least == 0) return {0, fmt::format("the least {} is 0", metric)};
      return {*most / *least, ""};
  }
  throw std::logic_error("no such taking");
}

/// The number of a claim with one seed, in the claim's unit.
measured_number number_of(const results& all, const claim& c, std::uint64_t seed) {
  const measure& how = *c.how;
  measured_number number = number_of(all, how.of, how.metric, seed);
  if (!number.why.empty()) return number;
  if (how.relative_to) {
    const measured_number other = number_of(all, *how.relative_to, how.metric, seed);
    if (!other.why.empty()) return other;
    if (other.value == 0) return {0, fmt::format("the {} that it is relative to is 0", how.metric)};
    // The quotient of two differences that point the other way would look like that of two that
    // point the right way.
    if (other.value < 0)
      return {0, fmt::format("the difference in {} that it is relative to is below 0", how.metric)};
    number.value /= other.value;
  } else if (!how.of.denominator && how.of.take != quotient::taking::spread) {
    number.value *= per_base(c.unit);
  }
  return number;
}

outcome outcome_of(const claim& c, const results& all) {
  outcome out{.of = &c, .ours = std::nullopt, .spread = 0, .said = verdict::misses, .why = ""};
  if (!c.how) {
    out.why = "not measured, needs " + c.needs;
    return out;
  }
  std::vector<double> each;
  for (const std::uint64_t seed : seeds_of(c.how_close)) {
    const measured_number one = number_of(all, c, seed);
    if (!one.why.empty()) {
      out.why = one.why;
      return out;
    }
    each.push_back(one.value);
  }
  const spread_number ours = over_seeds(each);
  out.ours = ours.median;
  out.spread = ours.spread;
  out.said = judged(c, ours);
  return out;
}

measured_figure measured(const figure& f, const results& all) {
  measured_figure made{.of = &f, .curves = {}};
  for (const figure::curve& c : f.curves) {
    measured_figure::curve& curve = made.curves.emplace_back();
    for (std::size_t i = 0; i < c.runs.size(); ++i) {
      if (is_distribution(f.metric)) {
        const result& got = all.at(key_of(c.runs[i]));
        curve.why = fault_of(got);
        if (!curve.why.empty()) continue;
        for (const auto& [seconds, fraction] : distribution_of(got.run, f.metric))
          curve.points.emplace_back(seconds * per_base(f.unit), fraction);
        continue;
      }
      const measured_number y = number_of(all, c.runs[i], c.metric);
      if (y.why.empty())
        curve.points.emplace_back(f.points[i].x, y.value * per_base(f.unit));
      else
        curve.why = y.why;
    }
  }
  return made;
}

}  // namespace

std::string_view to_string(verdict said) {
  switch (said) {
    case verdict::holds:
      return "holds";
    case verdict::misses:
      return "misses";
    case verdict::undecided:
      return "undecided";
  }
  return "";
}

std::string remark_of(const outcome& o) {
  if (o.holds()) return o.of->note;
  if (!o.why.empty()) return o.why;
  if (!o.of->missed.empty()) return o.of->missed;
  if (o.said == verdict::undecided)
    return fmt::format("the results of {} seeds are {:.2g} apart", std::size(seeds), o.spread);
  return o.of->note;
}

bool reproduction::holds() const {
  return std::all_of(claims.begin(), claims.end(), [](const outcome& o) { return o.holds(); }) &&
         std::all_of(beyond.begin(), beyond.end(), [](const measured_curve& c) {
           return std::all_of(c.points.begin(), c.points.end(),
                              [](const run& point) { return point.at("violations") == 0; });
         });
}

reproduction carry_out(const wanted& what, const how& way) {
  std::vector<series> others;
  for (const figure* const f : what.figures)
    for (const figure::curve& c : f->curves)
      for (const run& one : c.runs)
        others.push_back({fmt::format("{}/{}{}", f->paper, f->name, f->panel),
                          fmt::format("{}: {}{}, curve '{}'", f->at, f->name, f->panel, c.name),
                          {one}});
  for (const curve& c : what.curves) {
    const std::string name = fmt::format("beyond/{} {}", c.machine, c.lock);
    others.push_back({name, name, c.runs});
  }
  const results got = carry_out_runs(what.claims, others, way);
  reproduction all;
  for (const claim* const c : what.claims) all.claims.push_back(outcome_of(*c, got));
  for (const figure* const f : what.figures) all.figures.push_back(measured(*f, got));
  for (const curve& c : what.curves) all.beyond.push_back(measured(c, got));
  return all;
}

namespace {

nlohmann::json rows_of(const std::vector<measured_figure>& figures) {
  const auto scale = [](figure::scale s) {
    return s == figure::scale::linear ? "linear" : "logarithmic";
  };
  nlohmann::json rows = nlohmann::json::array();
  for (const measured_figure& m : figures) {
    const figure& f = *m.of;
    nlohmann::json curves = nlohmann::json::array();
    for (std::size_t i = 0; i < f.curves.size(); ++i) {
      nlohmann::json points = nlohmann::json::array();
      for (const auto& [x, y] : m.curves[i].points) points.push_back({x, y});
      curves.push_back({{"name", f.curves[i].name}, {"points", std::move(points)}});
      if (!m.curves[i].why.empty()) curves.back()["why"] = m.curves[i].why;
    }
    nlohmann::json printed = nlohmann::json::array();
    for (const printed_point& p : f.printed)
      printed.push_back({{"curve", p.curve}, {"x", p.x}, {"y", p.y}, {"said", p.said}});
    nlohmann::json at = nlohmann::json::array();
    for (const figure::point& p : f.points) at.push_back(p.x);
    rows.push_back({{"paper", f.paper},
                    {"figure", f.name},
                    {"panel", f.panel},
                    {"title", f.title},
                    {"metric", f.metric},
                    {"unit", f.unit},
                    {"x", {{"label", f.x_label}, {"scale", scale(f.x_scale)}, {"at", at}}},
                    {"y", {{"scale", scale(f.y_scale)}}},
                    {"curves", std::move(curves)},
                    {"paper_points", std::move(printed)}});
    if (!f.note.empty()) rows.back()["note"] = f.note;
  }
  return rows;
}

}  // namespace

nlohmann::json to_json(const reproduction& all) {
  nlohmann::json claims = nlohmann::json::array();
  for (const outcome& o : all.claims) {
    const claim& c = *o.of;
    nlohmann::json one{{"paper", c.paper},
                       {"id", c.id},
                       {"where", c.where},
                       {"what", c.what},
                       {"kind", to_string(c.how_close)},
                       {"paper_value", c.value},
                       {"ours", o.ours ? nlohmann::json(*o.ours) : nlohmann::json()},
                       {"unit", c.unit},
                       {"tolerance", tolerance_of(c)},
                       {"verdict", o.holds() ? "holds" : "misses"},
                       {"calibrated_on_this", c.calibrated}};
    // The fixed interface has two verdicts; an undecided claim counts as missed.
    if (o.said == verdict::undecided) one["undecided"] = true;
    if (c.how_close == kind::direction) {
      one["relation"] = std::string(1, c.relation);
      if (o.ours) one["spread"] = o.spread;
    }
    if (!c.note.empty()) one["note"] = c.note;
    if (!o.holds() && c.because) {
      one["cause"] = to_string(*c.because);
      one["missed"] = c.missed;
    }
    if (!o.why.empty()) one["why"] = o.why;
    claims.push_back(std::move(one));
  }
  nlohmann::json made{{"lockflight", LOCKFLIGHT_VERSION}, {"claims", std::move(claims)}};
  if (!all.figures.empty()) made["figures"] = rows_of(all.figures);
  if (!all.beyond.empty()) made["beyond"] = rows_of(all.beyond);
  return made;
}

}  // namespace lockflight::reproduce
