// The numbers of a run that claims are about.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockflight::reproduce {

[[nodiscard]] std::vector<std::string> names_of_metrics();

/// True if a metric of one run is a quotient already.
[[nodiscard]] bool is_quotient(std::string_view metric);

/// True if a metric has that unit.
[[nodiscard]] bool fits(std::string_view metric, std::string_view unit);
/// The units of a metric, in words; of one that only says something in comparison, that.
[[nodiscard]] std::string_view units_of(std::string_view metric);
/// True if a metric is one number of the numerator and another one of the denominator.
[[nodiscard]] bool is_of_two_runs(std::string_view metric);

/// A metric of a run of the benchmark's JSON: times in seconds. Nothing if the run has none.
/// `divides` is whether the run is the denominator, where that makes a difference.
[[nodiscard]] std::optional<double> metric_of(const nlohmann::json& run, std::string_view metric,
                                              bool divides = false);

/// How many of a unit are one second, or one.
[[nodiscard]] double per_base(std::string_view unit);

// ---- figures ----

/// The metrics, and distributions: a curve of a distribution is one run.
[[nodiscard]] std::vector<std::string> names_of_figure_metrics();
[[nodiscard]] bool is_distribution(std::string_view metric);

/// The units of a figure's axis, and whether a metric or a distribution has that unit.
[[nodiscard]] const std::vector<std::string>& units_of_figures();
[[nodiscard]] bool fits_figure(std::string_view metric, std::string_view unit);

/// The points of a distribution of a run: seconds, and the fraction of all values up to there.
[[nodiscard]] std::vector<std::pair<double, double>> distribution_of(const nlohmann::json& run,
                                                                     std::string_view metric);

}  // namespace lockflight::reproduce
