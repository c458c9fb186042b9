// Participants that wait for each other in a circle.
#pragma once

#include <functional>
#include <vector>

#include "lockflight/domain.hpp"

namespace lockflight::detail {

/// The circles among the users of these locks. `parent_of` gives the parent of a process of this
/// host, and 0 if it does not know it.
[[nodiscard]] std::vector<lock_circle> circles_among(const std::vector<domain_lock>& locks,
                                                     const std::function<int(int)>& parent_of);

/// The parent of a process, from /proc.
[[nodiscard]] int parent_of_process(int pid);

}  // namespace lockflight::detail
