// The message of `lockflight run` while it waits: on a terminal a line that is drawn anew each
// second, else, if it is asked for, one line.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "lockflight/domain.hpp"

namespace lockflight::cli {

/// The holders of the lock that a run waits for, and the number of waiters before it: "held by
/// rsync (pid 4711) for 2 min 3 s, 3 before you", or "you are next". The last part is missing if
/// this process is not among the waiters, as when it gave up. For a run that has found no slot in
/// the domain: "all 4095 slots of domain jobs are taken".
[[nodiscard]] std::string obstacle_text(const domain& in, const std::string& name);

class wait_message {
 public:
  enum class kind : std::uint8_t {
    none,
    line,     ///< one line, after the first second
    redrawn,  ///< drawn anew each second, and taken away at the end; for a terminal
  };
  /// A message on standard error.
  explicit wait_message(kind what) : what_(what) {}
  ~wait_message() { clear(); }
  wait_message(const wait_message&) = delete;
  wait_message& operator=(const wait_message&) = delete;

  /// Begins the wait, unless it has begun already.
  void begin();
  /// Called again and again by the thread that waits for that name. Prints nothing in the first
  /// second, and asks other hosts for their uses at most every five seconds.
  void update(const domain& in, const std::string& name);
  /// Takes away a line that was drawn. Called before anything else is written to the terminal.
  void clear();

 private:
  using clock = std::chrono::steady_clock;

  kind what_;
  clock::time_point next_{};  // when there is something to say again; at 0: no wait has begun
  bool is_drawn_ = false;
};

}  // namespace lockflight::cli
