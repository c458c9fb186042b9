// The end of a hold that is set before its holder releases: a time limit of the holder's own, or
// the order of another process. Both reach the holder as a loss. The lock stays held until the
// holder has released it or has died, so an end never makes two holders.
//
// Each record of a participant has a word with the moment, the reason, and 24 bits that name the
// hold. The name is made of the participant's incarnation and the moment since when the record
// holds, which no two holds of a participant share:
//
// - The word of an earlier hold says nothing about the present one. The participant clears it when
//   the record holds anew, as the 24 bits of two holds may be the same by chance.
// - (!) An order may be written late, when the hold that it is for is over. It then names that
//   hold, and does not reach the next one of the same record.
// - The moment of a hold only comes nearer: a holder cannot take back an order.
//
// The moment is one of the machine's CLOCK_BOOTTIME, in milliseconds: it goes on while the machine
// sleeps, and is the same in all namespaces of time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lockflight/domain.hpp"
#include "names/file/layout.hpp"

namespace lockflight::detail {

/// The record of a hold and its name.
struct hold_name {
  int record = -1;
  std::uint32_t bits = 0;

  friend bool operator==(const hold_name&, const hold_name&) = default;
};

/// The name of the hold that the record has now, or had last.
[[nodiscard]] hold_name name_of_hold(const domain_slot_page& slot, int record);
/// A longer number of the same hold, for other processes and hosts. Never 0.
[[nodiscard]] std::uint64_t number_of_hold(const domain_slot_page& slot, int slot_number,
                                           int record);

struct hold_end {
  std::uint64_t at_ns = UINT64_MAX;  ///< of this process's CLOCK_BOOTTIME
  end_reason why = end_reason::none;
};
/// The end of that hold, if one is set.
[[nodiscard]] hold_end end_of(const domain_slot_page& slot, hold_name hold);
/// Sets the end of that hold, unless an earlier one is set. The reason of an end that is over
/// stays.
void set_end(domain_slot_page& slot, hold_name hold, hold_end end);
/// The time of CLOCK_BOOTTIME in this process.
[[nodiscard]] std::uint64_t boot_time_ns();

// ---- a participant whose hold has a life of its own ----

/// Called by the participant, which counts as a keeper from now on. The note is cut to
/// bytes_of_note.
void keep_by(domain_slot_page& slot, std::uint64_t token, std::string_view note);
/// The token, if the participant is a keeper; else 0.
[[nodiscard]] std::uint64_t kept_token(const domain_slot_page& slot);
/// The note of a keeper.
[[nodiscard]] std::string note_of(const domain_slot_page& slot);

}  // namespace lockflight::detail
