// A machine of the simulator, fitted to a fabric: its costs are measured on this launch.
#pragma once

#include <string>

#include "lab/bench/plan/launch.hpp"

namespace lockflight::bench {

/// Throws bad_request, on all ranks alike, unless the launch has ranks on two nodes. `path` is
/// where the machine file is to go. Collective.
void require_nodes_to_fit(launch& on, const std::string& path);

/// Measures what operations cost between and within the nodes of the launch; about two seconds.
/// Collective. Returns a machine file (docs/simulator.md), on rank 0.
[[nodiscard]] std::string fit_machine(launch& on);

/// The same for shared memory: one node with so many cores, each with a thread that is pinned to
/// it. About a second. Two cores are measured, and the others are assumed to be alike.
[[nodiscard]] std::string fit_shared_memory(int cores);

}  // namespace lockflight::bench
