// Measures claims: carries out each run that they need once, several at a time, and judges the
// results.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lab/bench/bench.hpp"
#include "lab/reproduce/beyond.hpp"
#include "lab/reproduce/claims.hpp"
#include "lab/reproduce/judge.hpp"

namespace lockflight::reproduce {

/// The outcome of a claim.
struct outcome {
  const claim* of = nullptr;
  std::optional<double> ours;  ///< in the claim's unit; none: not measured
  double spread = 0;           ///< how far apart the results with several seeds are
  verdict said = verdict::misses;
  std::string why;  ///< why it was not measured

  [[nodiscard]] bool holds() const { return said == verdict::holds; }
};

/// "holds", "misses", "undecided".
[[nodiscard]] std::string_view to_string(verdict said);

/// Why a claim does not hold: what the run lacked, or what its file says. Where it holds, the
/// claim's note.
[[nodiscard]] std::string remark_of(const outcome& o);

/// The results of a figure's curves.
struct measured_figure {
  const figure* of = nullptr;
  struct curve {
    /// x as in the figure's points, or the value of a distribution; y in the figure's unit, or the
    /// fraction of a distribution.
    std::vector<std::pair<nlohmann::json, double>> points;
    std::string why;  ///< why a point is missing
  };
  std::vector<curve> curves;  ///< as in the figure
};

/// The progress of a reproduction.
struct standing {
  std::size_t done = 0;          ///< runs
  std::size_t of = 0;            ///< runs in all
  double part = 0;               ///< of the estimated work that is done
  std::size_t claims_left = 0;   ///< claims that wait for a run
  std::vector<std::string> now;  ///< "rma/lb-1024-vs-d-mcs": the claims whose runs are under way
};

struct how {
  unsigned at_a_time = 0;                               ///< runs; 0: one for each processor
  std::function<void(const standing&)> tell = nullptr;  ///< called a few times a second
};

/// The claims, figures and curves that are to be measured.
struct wanted {
  std::vector<const claim*> claims;
  std::vector<const figure*> figures;
  std::vector<curve> curves;
};

/// The outcomes of claims, in their order, of figures and of curves.
struct reproduction {
  std::vector<outcome> claims;
  std::vector<measured_figure> figures;
  std::vector<measured_curve> beyond;

  /// True if all claims hold, and no curve's run broke mutual exclusion.
  [[nodiscard]] bool holds() const;
};

/// Throws bad_claims if the benchmark refuses a run.
[[nodiscard]] reproduction carry_out(const wanted& what, const how& way = {});
[[nodiscard]] inline std::vector<outcome> carry_out(const std::vector<const claim*>& claims,
                                                    const how& way = {}) {
  return carry_out(wanted{.claims = claims, .figures = {}, .curves = {}}, way).claims;
}

/// The JSON of the program's fixed interface; with figures also "figures", and with curves
/// "beyond", a row for each point.
[[nodiscard]] nlohmann::json to_json(const reproduction& all);

}  // namespace lockflight::reproduce
