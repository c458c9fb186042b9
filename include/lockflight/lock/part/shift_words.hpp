// The words of shiftlock: the state of its readers, and what a writer passes to its successor.
//
// Source: "ShiftLock: Mitigate One-sided RDMA Lock Contention via Handover" (FAST 2025): rdr, epoch
// and rel of the lock's words, and the messages Handover and ModeChanged.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lockflight/rma/packed.hpp"

namespace lockflight::lock {

/// The word of the readers' state. The releases lie on top, where a carry leaves the word.
class shift_format {
 public:
  /// `counter_bits` of them count releases.
  explicit constexpr shift_format(std::int64_t counter_bits)
      : releases_{.at = 64 - static_cast<unsigned>(counter_bits),
                  .bits = static_cast<unsigned>(counter_bits)} {}

  static constexpr rma::field readers{.at = 0, .bits = 24};  ///< readers that are in or wait
  static constexpr rma::field writer{.at = 24, .bits = 1};
  static constexpr rma::field epoch{.at = 31, .bits = 1};
  static_assert(rma::are_disjoint({readers, writer, epoch, {.at = 32, .bits = 32}}));

  [[nodiscard]] static constexpr rma::word one(rma::field of) { return rma::word{1} << of.at; }
  [[nodiscard]] static constexpr rma::word get(rma::word state, rma::field of) {
    return state >> of.at & of.most();
  }
  [[nodiscard]] constexpr rma::word one_release() const { return one(releases_); }
  [[nodiscard]] constexpr rma::word releases(rma::word state) const {
    return get(state, releases_);
  }
  /// The number of releases when all readers of this state have left.
  [[nodiscard]] constexpr rma::word releases_without_readers(rma::word state) const {
    return (releases(state) + get(state, readers)) & releases_.most();
  }

  /// How many participants the fields can count. All of them may be readers, and a writer waits for
  /// fewer releases than there are participants.
  [[nodiscard]] constexpr std::int64_t most_participants() const {
    return std::int64_t{1} << std::min(releases_.bits, readers.bits - 1);
  }

 private:
  rma::field releases_;
};

/// The word that a writer puts into the queue node of its successor.
struct shift_grant : rma::packed<shift_grant> {
  static constexpr rma::field kind{.at = 0, .bits = 2};
  static constexpr rma::field epoch{.at = 2, .bits = 1};      ///< of the state
  static constexpr rma::field in_a_row{.at = 3, .bits = 29};  ///< handovers
  static constexpr rma::field releases{.at = 32, .bits = 32};
  static_assert(rma::are_disjoint({kind, epoch, in_a_row, releases}));

  static constexpr rma::word waits = 0;     ///< nothing was passed yet
  static constexpr rma::word handover = 1;  ///< the successor is in
  static constexpr rma::word mode_changed =
      2;                                ///< the waiter is in when so many releases are counted
  static constexpr rma::word head = 3;  ///< the waiter is the first of the queue
};

}  // namespace lockflight::lock
