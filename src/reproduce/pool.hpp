// Runs that are carried out at the same time, each once.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "reproduce/reproduce.hpp"

namespace lockflight::reproduce {

/// A run's result, or why there is none.
struct result {
  nlohmann::json run;  ///< as in the benchmark's JSON
  std::string failed;
};

/// What a run is asked for by: equal settings are the same run.
[[nodiscard]] inline std::string key_of(const run& what) { return what.dump(); }

/// Carries out every run that the claims need.
[[nodiscard]] std::map<std::string, result> carry_out_runs(const std::vector<const claim*>& claims,
                                                           const how& way);

}  // namespace lockflight::reproduce
