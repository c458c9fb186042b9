// The message of `lockflight run` while it waits: on a terminal a line that is drawn anew each
// second, else, if it is asked for, one line.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "lockflight/domain.hpp"

namespace lockflight::cli {

/// The name that a run waits for, and its users.
struct obstacle {
  std::string name;
  std::vector<lock_user> users;
  std::vector<std::string> silent;  ///< as in domain_elsewhere
  /// As named_control::missing_answer(). If it is not empty, users were not looked for.
  std::string missing_answer;
};
/// The obstacle of the name that the handle waits for, or waited for last. Other hosts have
/// `hosts_answer_within` for an answer.
[[nodiscard]] obstacle obstacle_of(const domain& in, named_handle& held,
                                   std::chrono::milliseconds hosts_answer_within);

/// The holders of what a run waits for, and how many wait before it: "held by rsync (pid 4711) for
/// 2 min 3 s, 3 before you", or "you are next". Without the last part if this process is not among
/// the waiters, as when it gave up. Also says which hosts did not answer. For a run that has found
/// no slot in the domain: "all 4095 slots of domain jobs are taken".
[[nodiscard]] std::string obstacle_text(const domain& in, const obstacle& what);

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
  /// Called again and again by the thread that waits for that handle. Says nothing in the first
  /// second, and asks other hosts for their uses no more than every five seconds. They have
  /// `hosts_answer_within` for an answer; with 0 nothing is said.
  void update(const domain& in, named_handle& held, std::chrono::milliseconds hosts_answer_within);
  /// Takes away a line that was drawn. Called before anything else is written to the terminal.
  void clear();

 private:
  using clock = std::chrono::steady_clock;

  kind what_;
  clock::time_point next_{};  // when there is something to say again; at 0: no wait has begun
  bool is_drawn_ = false;
};

}  // namespace lockflight::cli
