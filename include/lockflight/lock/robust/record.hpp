// What a participant has to do with a robust lock: one word, written by itself alone while it
// lives.
#pragma once

#include "lockflight/rma/packed.hpp"

namespace lockflight::lock {

/// All zero: nothing.
struct record : rma::packed<record> {
  enum phase_of : rma::word {
    idle = 0,
    acquiring = 1,  ///< uses the words of the generation's lock, and so does `releasing`
    holding = 2,
    sharing = 3,
    releasing = 4,
    left = 5,    ///< uses no word of the lock, but others may still write to its queue nodes
    buried = 6,  ///< is dead, and the repair that is under way has seen that
  };

  static constexpr rma::field phase{.at = 0, .bits = 3};
  static constexpr rma::field generation{.at = 3, .bits = 32};
  static constexpr rma::field lock{.at = 35, .bits = 29};  ///< the cache line of its first word
  static_assert(rma::are_disjoint({phase, generation, lock}));
};

}  // namespace lockflight::lock
