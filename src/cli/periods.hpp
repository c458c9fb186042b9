// `lockflight run --every`: periods of wall-clock time. The note beside a lock says until when the
// work of its name counts as done (period_note.hpp).
#pragma once

#include <cstdint>
#include <string>

namespace lockflight::cli {

/// A moment of the wall clock: seconds since 1970, UTC.
using wall_seconds = std::uint64_t;

/// "90s", "30m", "1h", "1d" as seconds. Throws usage_error.
[[nodiscard]] wall_seconds length_of_time(const std::string& argument, const std::string& text);
[[nodiscard]] wall_seconds seconds_of_wall_clock();
/// The end of the period in which we are. Periods are aligned to the beginning of 1970.
[[nodiscard]] wall_seconds end_of_present_period(wall_seconds length);
/// "2026-11-27 11:00:00 UTC".
[[nodiscard]] std::string utc_text(wall_seconds at);

}  // namespace lockflight::cli
