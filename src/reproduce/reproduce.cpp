#include "reproduce/reproduce.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "reproduce/judge.hpp"
#include "reproduce/metric.hpp"
#include "reproduce/pool.hpp"

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

outcome judged(const claim& c, const std::map<std::string, result>& results) {
  outcome out{.of = &c, .ours = std::nullopt, .holds = false, .why = ""};
  if (!c.how) {
    out.why = "not measured, needs " + c.needs;
    return out;
  }
  const measure& m = *c.how;
  const std::vector<run> runs = runs_of(c);
  const std::size_t step = m.denominator ? 2 : 1;
  for (std::size_t i = 0; i < runs.size(); i += step) {
    std::optional<double> number;
    for (std::size_t side = 0; side < step; ++side) {
      const result& got = results.at(key_of(runs[i + side]));
      if (out.why = fault_of(got); !out.why.empty()) return out;
      const auto part = metric_of(got.run, m.metric, side == 1);
      if (!part) {
        out.why = fmt::format("a run has no {}", m.metric);
        return out;
      }
      if (side == 1 && *part == 0) {
        out.why = fmt::format("the denominator's {} is 0", m.metric);
        return out;
      }
      number = side == 0 ? part : std::optional(*number / *part);
    }
    if (!m.denominator) *number *= per_base(c.unit);
    if (!out.ours)
      out.ours = number;
    else
      out.ours = m.take_most ? std::max(*out.ours, *number) : std::min(*out.ours, *number);
  }
  out.holds = holds(c, *out.ours);
  return out;
}

}  // namespace

bool reproduction::holds() const {
  return std::all_of(claims.begin(), claims.end(), [](const outcome& o) { return o.holds; }) &&
         std::all_of(beyond.begin(), beyond.end(), [](const measured_curve& c) {
           return std::all_of(c.points.begin(), c.points.end(),
                              [](const run& point) { return point.at("violations") == 0; });
         });
}

reproduction carry_out(const std::vector<const claim*>& claims, const std::vector<curve>& curves,
                       const how& way) {
  std::vector<series> others;
  for (const curve& c : curves)
    others.push_back({fmt::format("beyond/{} {}", c.machine, c.lock), c.runs});
  const auto results = carry_out_runs(claims, others, way);
  reproduction all;
  for (const claim* const c : claims) all.claims.push_back(judged(*c, results));
  for (const curve& c : curves) all.beyond.push_back(measured(c, results));
  return all;
}

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
                       {"tolerance", tolerance_of(c.how_close)},
                       {"verdict", o.holds ? "holds" : "misses"},
                       {"calibrated_on_this", c.calibrated}};
    if (c.how_close == kind::direction) one["relation"] = std::string(1, c.relation);
    if (!c.note.empty()) one["note"] = c.note;
    if (!o.why.empty()) one["why"] = o.why;
    claims.push_back(std::move(one));
  }
  nlohmann::json made{{"lockflight", LOCKFLIGHT_VERSION}, {"claims", std::move(claims)}};
  if (!all.beyond.empty()) made["beyond"] = rows_of(all.beyond);
  return made;
}

}  // namespace lockflight::reproduce
