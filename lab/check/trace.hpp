// The description of a schedule for people.
#pragma once

#include <vector>

#include "lab/check/check.hpp"

namespace lockflight::check {

/// Runs `schedule` from the beginning and describes each step.
[[nodiscard]] std::vector<trace_row> trace_of(engine& e, const std::vector<step>& schedule);

}  // namespace lockflight::check
