// Runs that are carried out at the same time, each once.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lab/reproduce/reproduce.hpp"

namespace lockflight::reproduce {

/// A run's result, or why there is none.
struct result {
  nlohmann::json run;  ///< as in the benchmark's JSON
  std::string failed;
};

/// The key of a run: equal settings are the same run.
[[nodiscard]] inline std::string key_of(const run& what) { return what.dump(); }

/// Runs one after the other, until one of them fails: those after it are not carried out.
struct series {
  std::string name;  ///< for progress
  std::string at;    ///< for errors: where the runs come from
  std::vector<run> runs;
};

/// Carries out every run that the claims need, and the series. A run for which there is too little
/// memory has failed; throws bad_claims if the benchmark refuses a run for any other reason.
[[nodiscard]] std::map<std::string, result> carry_out_runs(const std::vector<const claim*>& claims,
                                                           const std::vector<series>& others,
                                                           const how& way);

}  // namespace lockflight::reproduce
