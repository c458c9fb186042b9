// `lockflight run --once-per`: slots of wall-clock time. The note beside a lock says until when the
// work of its name counts as done (slot_note.hpp).
#pragma once

#include <cstdint>
#include <string>

namespace lockflight::cli {

/// A moment of the wall clock: seconds since 1970, UTC.
using wall_seconds = std::uint64_t;

/// "90s", "30m", "1h", "1d" as seconds. Throws usage_error.
[[nodiscard]] wall_seconds slot_length(const std::string& argument, const std::string& text);
/// The end of the slot in which we are. Slots are aligned to the beginning of 1970.
[[nodiscard]] wall_seconds end_of_present_slot(wall_seconds length);
/// "2026-11-27 11:00:00 UTC".
[[nodiscard]] std::string utc_text(wall_seconds at);

}  // namespace lockflight::cli
