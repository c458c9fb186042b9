// The benchmark on simulated machines. Ranks are fibers, and the time is virtual: a run is the same
// each time.
#pragma once

#include <functional>

#include "lab/bench/workload/anywhere.hpp"

namespace lockflight::bench {

/// Runs a lock once on the plan's profile. `watch` is called a few times a second of real time;
/// what it throws ends the run.
void run_on_sim(const anywhere& lock, const run_plan& plan, const run_results& results,
                const std::function<void()>& watch);

/// The places of a profile's ranks, filled node by node, unless levels are given.
[[nodiscard]] rma::topology machine_on(const sim::machine_profile& profile, int procs);

}  // namespace lockflight::bench
