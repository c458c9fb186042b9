// The user's choice of the thread that serves other nodes while a rank computes.
#pragma once

#include <cstdint>

namespace lockflight::fabric::detail {

/// `trial`: the one that this fabric and this launch need.
enum class progress_by : std::uint8_t { calls, thread, trial };

/// As LOCKFLIGHT_PROGRESS says: `calls`, which is the default, `thread` or `auto`. Throws
/// std::invalid_argument on another word.
[[nodiscard]] progress_by wanted_progress();

}  // namespace lockflight::fabric::detail
