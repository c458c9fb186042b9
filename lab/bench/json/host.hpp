// The machine of a comparison.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "lab/bench/plan/launch.hpp"
#include "lab/bench/port/clock.hpp"

namespace lockflight::bench {

/// Facts that explain numbers; none that identifies the machine's owner.
[[nodiscard]] nlohmann::json host_facts(const tick_clock& clock = tick_clock::calibrated());

/// The hosts of a launch in the order of their first ranks: {"name", "ranks", "cores",
/// "processors", "cpu_model", "kernel"} each. Collective.
[[nodiscard]] nlohmann::json hosts_of(launch& all);

}  // namespace lockflight::bench
