// The locks on simulated machines.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "bench/plan.hpp"
#include "bench/results.hpp"

namespace lockflight::bench {

struct sim_entry {
  std::string_view lock;
  /// Runs the lock once on the plan's profile. `watch` is called a few times a second of real time;
  /// what it throws ends the run.
  void (*run)(const run_plan&, const run_results&, const std::function<void()>& watch);
};

/// Every lock that runs in the simulator. Generated (CMakeLists.txt).
[[nodiscard]] const std::vector<sim_entry>& sim_entries();

/// The lock's; null if it does not run there.
[[nodiscard]] const sim_entry* sim_entry_of(std::string_view lock);

/// Where a profile's ranks live, filled node by node, unless levels are given.
[[nodiscard]] rma::topology machine_on(const sim::machine_profile& profile, int procs);

}  // namespace lockflight::bench
