// The record of a participant's use of a robust lock, one word. The participant writes it; a
// repairer compare-swaps it from `acquiring` or `releasing` to `evicted`, and owns it once the
// participant is dead.
#pragma once

#include "lockflight/rma/packed.hpp"

namespace lockflight::lock {

/// A record of zeros is that of a participant that does nothing.
struct record : rma::packed<record> {
  enum phase_of : rma::word {
    idle = 0,
    acquiring = 1,  ///< uses the words of the generation's instance, and so does `releasing`
    holding = 2,
    sharing = 3,
    releasing = 4,
    left = 5,          ///< uses no word of the lock, but others may still write to its queue nodes
    acknowledged = 6,  ///< is dead, and a repair has dealt with that
    evicted = 7,  ///< a repairer has ended its acquire or release, and it may not know that yet
  };

  static constexpr rma::field phase{.at = 0, .bits = 3};
  static constexpr rma::field generation{.at = 3, .bits = 32};
  static constexpr rma::field lock{.at = 35, .bits = 29};  ///< the cache line of its first word
  static_assert(rma::are_disjoint({phase, generation, lock}));

  /// True if the participant holds, in any way.
  [[nodiscard]] constexpr bool holds() const {
    return get(phase) == holding || get(phase) == sharing;
  }
  /// True if the participant may use the words of its generation's instance.
  [[nodiscard]] constexpr bool is_in() const {
    return get(phase) == acquiring || get(phase) == releasing || get(phase) == evicted;
  }
};

}  // namespace lockflight::lock
