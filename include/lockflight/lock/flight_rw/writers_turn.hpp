// What the writers of flight-rw tell each other of a turn of theirs: a note of flight
// (flight_rw/writers.hpp).
#pragma once

#include <cstdint>

#include "lockflight/lock/flight/node_word.hpp"

namespace lockflight::lock {

/// A turn of writers, while the gates stay closed.
struct writers_turn {
  std::uint16_t writers = 0;  ///< that have had the lock since the gates were closed
  bool quiet = false;         ///< no reader was there when they were

  static constexpr std::uint16_t most = node_word::most_note >> 1;
  /// The note at open gates: the readers' turn has just begun.
  static constexpr std::uint16_t is_over = 1;
  /// The note at idle gates, which the own gate may not tell, and nobody need ask. No turn has so
  /// many writers.
  static constexpr std::uint16_t are_idle = std::uint16_t{most} << 1;

  [[nodiscard]] static constexpr bool is_note_of_one(std::uint16_t note) {
    return note > is_over && note != are_idle;
  }

  [[nodiscard]] static constexpr writers_turn from(std::uint16_t note) {
    return {static_cast<std::uint16_t>(note >> 1), (note & 1) != 0};
  }
  [[nodiscard]] constexpr std::uint16_t bits() const {
    return static_cast<std::uint16_t>(writers << 1 | (quiet ? 1 : 0));
  }
  [[nodiscard]] constexpr writers_turn next() const {
    return {static_cast<std::uint16_t>(writers + 1), quiet};
  }
};

}  // namespace lockflight::lock
