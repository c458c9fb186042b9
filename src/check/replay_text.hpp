// A counterexample as one line of text that can be given back to the program.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "check/check.hpp"

namespace lockflight::check {

/// "lock=rma-rw;writers=1;…;steps=aabA0": the request, then the schedule: a lower-case letter lets
/// that participant go on, an upper-case one with a number makes its posted operation take effect,
/// a digit makes that participant's oldest store visible.
[[nodiscard]] std::string to_replay_text(const report& of);

/// Throws bad_request that names the part that cannot be read.
[[nodiscard]] std::pair<request, std::vector<step>> from_replay_text(const std::string& text);

}  // namespace lockflight::check
