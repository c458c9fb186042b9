// A lock's workloads on any fabric, as functions. entry/make_anywhere.hpp makes them.
#pragma once

#include <cstdint>

#include "lab/bench/workload/plan.hpp"
#include "lab/bench/workload/results.hpp"

namespace lockflight::bench {

class any_clock;
class any_port;

/// A lock behind any_port: the functions that every fabric needs to run it. Locks that need native
/// memory run on ports that have it.
struct anywhere {
  /// How many words of each rank's segment a run needs.
  std::uint32_t (*words)(const run_plan&);
  void (*run_rank)(any_port&, std::uint32_t words, const run_plan&, const any_clock&,
                   const run_results&);
};

}  // namespace lockflight::bench
