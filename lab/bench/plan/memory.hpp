// An estimate of the memory that a simulated run takes.
#pragma once

#include "lab/bench/plan/request.hpp"

namespace lockflight::bench {

/// About how many bytes the run will touch: most of it each rank's stack and histogram.
[[nodiscard]] double bytes_needed(const job& what);

/// How many bytes this machine has left; infinity if it does not say.
[[nodiscard]] double bytes_available();

}  // namespace lockflight::bench
