// Finds a lock's parameters for a workload by running it: requests and outcomes.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "lab/bench/bench.hpp"
#include "lab/tune/contest.hpp"
#include "lockflight/profile.hpp"

namespace lockflight::tune {

/// The measure to improve.
struct objective {
  std::string name;
  std::string what;
  std::string unit;
  bool less_is_better;
  double (*of)(const nlohmann::json& run);  ///< NaN if a run has no value
};
[[nodiscard]] const std::vector<objective>& objectives();

/// A parameter to tune, and the values to choose among; none: a ladder over its range.
struct parameter_request {
  std::string name;
  std::vector<std::int64_t> values;
};

struct request {
  /// The run has one lock and one number of ranks. Parameters that it sets are held fixed.
  bench::request run;
  std::vector<parameter_request> parameters;  ///< empty: all that matter on this machine
  objective aim;
  unsigned turns = 5;
  budget most;
};

/// Thrown if a run broke mutual exclusion.
struct broken : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct outcome {
  request asked;
  std::vector<axis> axes;
  setting start;  ///< the defaults, and the fixed parameters
  setting best;
  bool finished = true;  ///< false: the budget was spent before the search was over
  std::vector<attempt> attempts;
  contest::last last;
  std::uint64_t runs = 0;
  /// The last run of each setting that was measured at the end.
  std::map<setting, nlohmann::json> last_runs;

  [[nodiscard]] const nlohmann::json& run_of(const setting& set) const { return last_runs.at(set); }

  /// How many times as good as the defaults the chosen setting is; 1 if nothing was gained.
  [[nodiscard]] double gain() const;
  /// The lock's parameters to use: the setting found, or the start if nothing was gained.
  [[nodiscard]] const setting& chosen() const { return last.gained ? best : start; }
};

/// The progress of a search.
struct progress {
  std::uint64_t runs = 0;  ///< runs that are over
  std::string trying;      ///< "T_R=2000"; empty: the last measurement
  double fraction = 0;     ///< of this run
};

/// Throws bench::bad_request unless `what` could be tuned.
void validate(const request& what);

/// Throws bench::bad_request, broken, or as bench::run does. In a launch all processes search in
/// lock step by rank 0's measurements, and only rank 0's outcome has runs.
[[nodiscard]] outcome tune(const request& what,
                           const std::function<void(const progress&)>& watch = nullptr);

/// An entry of "tuned" in the program's JSON.
[[nodiscard]] nlohmann::json to_json(const outcome& of);

/// The lock's part of a profile.
[[nodiscard]] profile::entry entry_of(const outcome& of);

}  // namespace lockflight::tune
