// What a fair schedule makes of a state: does anybody get on?
#pragma once

#include <optional>

#include "check/engine/engine.hpp"

namespace lockflight::check {

/// From a state in which participants have used up their retries: lifts the limit and lets
/// everybody go on in turn, without the effects that no flush waits for, which may never happen. A
/// violation if, after many turns, nobody has entered or finished. Leaves the state as it was.
[[nodiscard]] std::optional<violation> find_livelock(engine& e);

/// What it means that no step is sure to come (engine::only_unflushed): nothing if all have
/// finished or if those who retry would get on, else a violation.
[[nodiscard]] std::optional<violation> judge_end(engine& e);

}  // namespace lockflight::check
