// `lockflight run --once-per`: slots of wall-clock time, and the note beside a lock that says until
// when the work of its name counts as done.
//
// Invariant: the note is written before the command starts, by the holder of the lock, and it does
// not become smaller. So a command runs at most once in a slot, also if its run is killed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "lockflight/domain.hpp"

namespace lockflight::cli {

/// A moment of the wall clock: seconds since 1970, UTC.
using wall_seconds = std::uint64_t;

/// Where the note of a name is.
class slot_note {
 public:
  slot_note() = default;
  slot_note(const slot_note&) = delete;
  slot_note& operator=(const slot_note&) = delete;
  virtual ~slot_note() = default;

  /// Until when the work is done; 0: it never was. Who does not hold the lock may ask, too.
  [[nodiscard]] virtual wall_seconds done_until() const = 0;
  /// For the holder of the lock.
  virtual void set_done_until(wall_seconds at) = 0;
};

/// Throws usage_error if there are no notes in a domain of that name. A cluster's note has to
/// survive the hosts, so it has to be in etcd, with which the agent alone talks.
void check_that_slots_are_noted(const std::string& domain);
/// That of the lock, as long as the handle lives.
[[nodiscard]] std::unique_ptr<slot_note> slot_note_of(named_lock& lock);

/// "90s", "30m", "1h", "1d" as seconds. Throws usage_error.
[[nodiscard]] wall_seconds slot_length(const std::string& argument, const std::string& text);
/// The end of the slot in which we are. Slots are aligned to the beginning of 1970.
[[nodiscard]] wall_seconds end_of_present_slot(wall_seconds length);
/// "2026-11-27 11:00:00 UTC".
[[nodiscard]] std::string utc_text(wall_seconds at);

}  // namespace lockflight::cli
