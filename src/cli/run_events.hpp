// `lockflight run --json FD`: the events of the run, as lines of JSON for a script that reads the
// other end of that descriptor. Each line is one object with the field "event".
//
// The run does not wait for its reader. If there is no room for a line within a tenth of a second,
// that line and all later ones are lost, so that a reader gets whole lines only.
#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/attended.hpp"
#include "cli/periods.hpp"
#include "cli/run_result.hpp"
#include "cli/wait_message.hpp"
#include "lockflight/domain.hpp"

namespace lockflight::cli {

class run_events {
 public:
  /// The events of a run for those names. `to` -1: the events are not wanted.
  run_events(int to, const std::vector<std::string>& names);
  [[nodiscard]] bool is_wanted() const { return to_ >= 0; }

  /// Called again and again while the wait for that handle goes on; writes one event, after a
  /// second. Other hosts have `hosts_answer_within` for an answer; with 0 nothing is written.
  void waits(const domain& in, named_handle& held, std::chrono::milliseconds hosts_answer_within);
  void has_lock(const named_handle& held);
  void was_not_free(const obstacle& what);
  void is_done_until(wall_seconds moment);
  void follows(const run_result& of);
  /// Called if that signal has ended the wait, or with 0 if the process that the caller started is
  /// gone.
  void was_interrupted(int signal_number);
  void command_has_ended(const ending& its);
  void command_runs_again(std::chrono::nanoseconds after);
  void ends_soon(std::chrono::nanoseconds in);
  /// `why` is that of word_of_loss().
  void has_lost_lock(const char* why);
  void has_released();
  /// Called when the descriptor is about to be closed.
  void end() { to_ = -1; }

 private:
  void write(const char* event, nlohmann::ordered_json fields = nlohmann::ordered_json::object());

  int to_;
  const std::vector<std::string>& names_;
  std::uint64_t began_ns_;
  bool has_said_that_it_waits_ = false;
};

/// The descriptor that the text names. Throws usage_error unless it is open, can be written, and is
/// none of the standard streams that COMMAND has. COMMAND does not inherit it.
[[nodiscard]] int events_descriptor(const std::string& argument, const std::string& text);

}  // namespace lockflight::cli
