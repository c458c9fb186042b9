// The watch of a waiting run for circles of participants that wait for each other.
#pragma once

#include <chrono>

#include "cli/wait_message.hpp"
#include "lockflight/domain.hpp"

namespace lockflight::cli {

class circle_watch {
 public:
  /// `says`: a wait in a circle is reported, beside `message`. `ends`: such a wait is ended.
  circle_watch(wait_message& message, bool says, bool ends)
      : message_(message), says_(says), ends_(ends) {}

  /// Called again and again by the thread that waits. `holds` says whether this process holds a
  /// lock, or is inside of a run: else it is in no circle, and nothing is looked at. Looks after a
  /// second, and then less and less often, down to once in 16 seconds. The first time that this
  /// process is found in one, says so on standard error. True if the wait is to end: of the members
  /// of a circle that would end it, the one that has waited for the shortest time does so at once,
  /// and each other one gives those that are younger a second each. A circle over hosts is not
  /// ended, since more than one process of a host may look like one member.
  /// Other hosts have `hosts_answer_within` for an answer; with 0 nothing is looked at.
  [[nodiscard]] bool is_to_end(const domain& in, bool holds,
                               std::chrono::milliseconds hosts_answer_within);
  /// True if is_to_end() has returned true.
  [[nodiscard]] bool has_ended() const { return has_ended_; }

 private:
  using clock = std::chrono::steady_clock;

  wait_message& message_;
  bool says_;
  bool ends_;
  bool has_ended_ = false;
  int times_seen_ = 0;  // in a row
  std::chrono::seconds pause_{1};
  clock::time_point next_ = clock::now() + pause_;
};

}  // namespace lockflight::cli
