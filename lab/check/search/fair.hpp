// A check that a fair schedule makes progress from a state.
#pragma once

#include <optional>

#include "lab/check/engine/engine.hpp"

namespace lockflight::check {

/// From a state in which participants have used up their retries: lifts the limit and runs all
/// participants round robin, without the effects that no flush waits for, which may never happen. A
/// violation if, after many rounds, none has entered or finished. Leaves the state as it was.
[[nodiscard]] std::optional<violation> find_livelock(engine& e);

/// Judges a state in which no step is sure to come (engine::only_unflushed): nothing if all have
/// finished or if the retrying participants would make progress, else a violation.
[[nodiscard]] std::optional<violation> judge_end(engine& e);

}  // namespace lockflight::check
