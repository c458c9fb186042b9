// A counterexample as one line of text that the program can replay.
#pragma once

#include <string>
#include <vector>

#include "lab/check/check.hpp"

namespace lockflight::check {

/// "lock=rma-rw;writers=1;…;steps=aabA0": the request, then the schedule: a lower-case letter lets
/// that participant go on, an upper-case one with a number makes its posted operation take effect,
/// a digit makes that participant's oldest store visible. After a search for starvation the text
/// also has the watched participants, and how many of the last steps repeat.
[[nodiscard]] std::string to_replay_text(const report& of);

struct replayed {
  request asked;
  std::vector<step> schedule;
  std::size_t repeats;  ///< outcome::repeats
};

/// Throws bad_request that names the part that cannot be read.
[[nodiscard]] replayed from_replay_text(const std::string& text);

}  // namespace lockflight::check
