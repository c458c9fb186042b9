// From the ranks' measurements to the RUN of the program's interface.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>

#include "lab/bench/plan/request.hpp"
#include "lab/bench/port/clock.hpp"
#include "lab/bench/workload/results.hpp"

namespace lockflight::bench {

/// `fabric` is the name of the fabric of the run. All numbers are of the measured part, except
/// violations, which are of the whole run.
[[nodiscard]] nlohmann::json to_json(const job& what, const std::string& fabric,
                                     const run_results& results, const time_base& clock);

/// How evenly the ranks of a role were served: the least of the fairness indices of each role's
/// throughputs. Nothing when no rank did an operation.
[[nodiscard]] std::optional<double> fairness(const run_plan& plan,
                                             std::span<const rank_result> ranks);

}  // namespace lockflight::bench
