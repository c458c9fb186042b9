// Many simulated histories, one after the other, each from a seed of its own; and a counterexample,
// shortened.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lab/cluster/core_under_test.hpp"
#include "lab/cluster/plan.hpp"

namespace lockflight::cluster::sim {

struct counterexample {
  plan what;             ///< with the fewest faults that were found
  std::string property;  ///< the rule that is broken
  std::string text;
  std::vector<std::string> trace;
};

struct campaign {
  std::uint64_t first_seed = 1;
  std::uint64_t most_seeds = UINT64_MAX;
  double virtual_hours = 1e18;
  bool shortens = true;
  /// Called after each history; false ends the campaign.
  std::function<bool(const struct progress&)> goes_on = [](const struct progress&) { return true; };
};

struct progress {
  std::uint64_t seeds = 0;
  double virtual_hours = 0;
  std::uint64_t entries = 0;
  std::uint64_t events = 0;
  std::optional<counterexample> found;
};

/// Ends at the first history that breaks a rule.
[[nodiscard]] progress run(const campaign& what, const core_under_test& core);

/// Runs a history. Returns the rule that it breaks, or "".
[[nodiscard]] std::string broken_rule(const plan& what, const core_under_test& core);
[[nodiscard]] counterexample shorten(plan what, const core_under_test& core);
/// As it is printed: the seed, the faults and the end of the trace.
[[nodiscard]] std::string text_of(const counterexample& what, std::size_t most_lines);

}  // namespace lockflight::cluster::sim
