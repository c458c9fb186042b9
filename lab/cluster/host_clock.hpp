// The clock of a host: it runs a little faster or slower than true time, and began at another
// moment.
#pragma once

#include <cmath>
#include <cstdint>

#include "names/cluster/core/terms.hpp"

namespace lockflight::cluster::sim {

/// Microseconds of true time.
using true_time = std::int64_t;

struct host_clock {
  double rate = 1;
  instant offset = 0;

  [[nodiscard]] instant at(true_time now) const {
    return offset + static_cast<instant>(std::floor(static_cast<double>(now) * rate));
  }
  /// The first moment at which the clock says that it is `when`.
  [[nodiscard]] true_time when(instant when) const {
    return static_cast<true_time>(std::ceil(static_cast<double>(when - offset) / rate)) + 1;
  }
};

}  // namespace lockflight::cluster::sim
