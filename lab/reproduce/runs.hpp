// The runs that claims and figures need.
#pragma once

#include <optional>
#include <vector>

#include "lab/bench/bench.hpp"
#include "lab/reproduce/claims.hpp"

namespace lockflight::reproduce {

/// The benchmark's request for a run. Throws bench::bad_request.
[[nodiscard]] bench::request request_of(const run& what);

/// The runs of one number of a quotient.
struct pair_of_runs {
  run numerator;
  std::optional<run> denominator;
  std::optional<run> less;
};

/// A quotient's runs with a seed: a pair for each settings of its sweep.
[[nodiscard]] std::vector<pair_of_runs> pairs_of(const quotient& q, std::uint64_t seed);

/// All runs that a claim needs.
[[nodiscard]] std::vector<run> runs_of(const claim& c);

}  // namespace lockflight::reproduce
