// What the gates and counters of flight-rw say. flight_rw.hpp has the protocol, reader_gates.hpp
// the cells that hold these.
#pragma once

#include <cstdint>

#include "lockflight/lock/node_queue.hpp"
#include "lockflight/rma/cell.hpp"

namespace lockflight::lock {

/// What a gate says. Zeroed memory is open. Epochs are told apart modulo 4: nobody who has parked
/// at e waits longer than until e + 1 is closed, since its writer waits for who has.
class gate {
 public:
  enum class state : std::uint8_t {
    open = 0,
    closed = 1,  // a writer is in or coming, and will open it
    idle = 2,    // no writer need be there: who wants it open must do it
  };

  constexpr gate() = default;
  constexpr gate(state s, rma::word epoch, rma::word quiet)
      : bits_((epoch & 3) << 4 | quiet << 2 | static_cast<rma::word>(s)) {}
  [[nodiscard]] static constexpr gate from(rma::word bits) {
    gate g;
    g.bits_ = bits;
    return g;
  }
  [[nodiscard]] constexpr rma::word bits() const { return bits_; }
  [[nodiscard]] constexpr state what() const { return static_cast<state>(bits_ & 3); }
  [[nodiscard]] constexpr rma::word quiet() const { return bits_ >> 2 & 3; }
  [[nodiscard]] constexpr rma::word epoch() const { return bits_ >> 4; }

 private:
  rma::word bits_ = 0;  // 2 of the state, 2 of closings in a row without a reader, 2 of the epoch
};

/// The readers of a cell, in one word: how many are active, how many are left of those who parked
/// in the even and in the odd phases, and how many of these wait until they get in; 12 bits each.
namespace reader_count {
constexpr int bits = 12;
constexpr rma::word most = (rma::word{1} << bits) - 1;
constexpr rma::word active = 1;
[[nodiscard]] constexpr rma::word parked(rma::word epoch) {
  return rma::word{1} << (epoch % 2 == 0 ? bits : 2 * bits);
}
[[nodiscard]] constexpr rma::word patient(rma::word epoch) {
  return rma::word{1} << (epoch % 2 == 0 ? 3 * bits : 4 * bits);
}
[[nodiscard]] constexpr rma::word of(rma::word one, rma::word counts) {
  return counts / one & most;
}
/// Whether the writer that has closed the gates for `epoch` may enter.
[[nodiscard]] constexpr bool gone(rma::word counts, rma::word epoch) {
  return of(active, counts) == 0 && of(parked(epoch - 1), counts) == 0;
}
}  // namespace reader_count

/// What writers tell each other while the gates stay closed: flight's note.
struct writers_turn {
  std::uint16_t writers = 0;  ///< that have had the lock since the gates were closed
  bool quiet = false;         ///< no reader was there when they were

  static constexpr std::uint16_t most = (1u << (node_word::note_bits - 1)) - 1;

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
