// Telling a schedule to a person.
#pragma once

#include <vector>

#include "check/check.hpp"

namespace lockflight::check {

/// Runs `schedule` from the beginning and says what happens at each step.
[[nodiscard]] std::vector<trace_row> trace_of(engine& e, const std::vector<step>& schedule);

}  // namespace lockflight::check
