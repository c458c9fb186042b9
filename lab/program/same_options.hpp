// The command lines of a launch: each rank reads its own, and all ranks have to do the same.
#pragma once

#include "lab/bench/plan/launch.hpp"

namespace lockflight::lab {

/// Throws usage_error, on all ranks alike, unless all have the command line of rank 0, whatever the
/// order of its options. Collective.
void require_same_options(bench::launch& on, int argc, const char* const* argv);

}  // namespace lockflight::lab
