// Measures claims: carries out each run that they need once, several at a time, and judges the
// results.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench/bench.hpp"
#include "reproduce/beyond.hpp"
#include "reproduce/claims.hpp"

namespace lockflight::reproduce {

/// The outcome of a claim.
struct outcome {
  const claim* of = nullptr;
  std::optional<double> ours;  ///< in the claim's unit; none: not measured
  bool holds = false;
  std::string why;  ///< why it was not measured
};

/// The progress of a reproduction.
struct standing {
  std::size_t done = 0;          ///< runs
  std::size_t of = 0;            ///< runs in all
  std::size_t claims_left = 0;   ///< that wait for a run
  std::vector<std::string> now;  ///< "rma/lb-1024-vs-d-mcs": the claims whose runs are under way
};

struct how {
  unsigned at_a_time = 0;                               ///< runs; 0: one for each processor
  std::function<void(const standing&)> tell = nullptr;  ///< called a few times a second
};

/// The benchmark's request for a run. Throws bench::bad_request.
[[nodiscard]] bench::request request_of(const run& what);

/// The runs that a claim needs, each with the settings of its sweep.
[[nodiscard]] std::vector<run> runs_of(const claim& c);

/// The outcomes of claims, in their order, and of curves.
struct reproduction {
  std::vector<outcome> claims;
  std::vector<measured_curve> beyond;

  /// Whether all claims hold, and no curve's run broke mutual exclusion.
  [[nodiscard]] bool holds() const;
};

/// Throws bad_claims if the benchmark refuses a claim's run.
[[nodiscard]] reproduction carry_out(const std::vector<const claim*>& claims,
                                     const std::vector<curve>& curves, const how& way = {});
[[nodiscard]] inline std::vector<outcome> carry_out(const std::vector<const claim*>& claims,
                                                    const how& way = {}) {
  return carry_out(claims, {}, way).claims;
}

/// The JSON of the program's fixed interface; with curves also "beyond", a row for each point.
[[nodiscard]] nlohmann::json to_json(const reproduction& all);

/// A page with a row for each claim and a chart for each figure, and of curves a chart for each
/// machine and share of writers. `papers` are the papers of the claims.
[[nodiscard]] std::string render_html(const std::vector<paper>& papers, const reproduction& all);

}  // namespace lockflight::reproduce
