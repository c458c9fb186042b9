// The numbers of a run that claims are about.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockflight::reproduce {

[[nodiscard]] std::vector<std::string> names_of_metrics();

/// Whether a metric of one run is a quotient already.
[[nodiscard]] bool is_quotient(std::string_view metric);

/// Whether a metric has that unit.
[[nodiscard]] bool fits(std::string_view metric, std::string_view unit);

/// A metric of a run of the benchmark's JSON: times in seconds. Nothing if the run has none.
/// `divides` is whether the run is the denominator, where that makes a difference.
[[nodiscard]] std::optional<double> metric_of(const nlohmann::json& run, std::string_view metric,
                                              bool divides = false);

/// How many of a unit are one second, or one.
[[nodiscard]] double per_base(std::string_view unit);

}  // namespace lockflight::reproduce
