// A check that the clock of deadlines moves. If it stands still, no deadline passes on this host,
// while the other hosts take it off the members and go on.
//
// Nothing tells a slow clock from a fast one on one host alone; the rates of two hosts may differ
// by five percent, for which the time to live has room. A clock that stands still is found out in
// two ways: a timer of another clock (CLOCK_MONOTONIC) ends, or a thousand events come, each of
// which takes a microsecond at the least.
#pragma once

#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <stdexcept>

#include "names/cluster/client/words.hpp"

namespace lockflight::cluster {

/// Thrown if the clock cannot be read, or does not move.
struct clock_failure : std::runtime_error {
  explicit clock_failure(const std::string& how)
      : std::runtime_error("the clock CLOCK_BOOTTIME of this host " + how +
                           ", so no deadline would ever pass here") {}
};

class clock_watch {
 public:
  /// Reads the clock until it moves. Throws clock_failure if it does not within 0.1 s of another
  /// one.
  static void require_moving() {
    timespec now{};
    if (clock_gettime(CLOCK_BOOTTIME, &now) != 0)
      throw clock_failure(fmt::format("cannot be read ({})", std::strerror(errno)));
    const instant begun = detail::boot_time();
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
    while (std::chrono::steady_clock::now() < until)
      if (detail::boot_time() != begun) return;
    throw clock_failure("stands still");
  }

  /// For each event: what the clock says. Throws clock_failure.
  instant read() {
    constexpr int most_at_one_instant = 1'000;
    const instant now = detail::boot_time();
    at_one_instant_ = now == last_ ? at_one_instant_ + 1 : 0;
    last_ = now;
    if (at_one_instant_ > most_at_one_instant)
      throw clock_failure(
          fmt::format("has said the same for {} events in a row", most_at_one_instant));
    return now;
  }

  /// A timer of CLOCK_MONOTONIC that was set at `since` for so long has ended. Throws
  /// clock_failure. Both clocks have the same rate while the machine does not sleep.
  static void ended(instant since, instant wait) {
    constexpr instant too_short_to_tell = 1'000;
    const instant moved = detail::boot_time() - since;
    if (wait >= too_short_to_tell && moved < wait / 2)
      throw clock_failure(fmt::format("has moved {} us while a timer of {} us ended", moved, wait));
  }

 private:
  instant last_ = 0;
  int at_one_instant_ = 0;
};

}  // namespace lockflight::cluster
