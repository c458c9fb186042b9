// The result of the last COMMAND of a name: a value that the run publishes (named_handle::publish),
// as JSON, so that other runs can end with it (`lockflight run --follow`), and people can see it
// (`lockflight done`).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "cli/periods.hpp"
#include "lockflight/named_control.hpp"

namespace lockflight::cli {

struct run_result {
  int code = 0;              ///< the exit code of COMMAND, or 128 + n after signal n
  wall_seconds began = 0;    ///< when COMMAND began
  wall_seconds ended = 0;    ///< and when it ended
  wall_seconds until = 0;    ///< with --every: the end of the period whose work it was
  std::string host = "";     ///< of the run
  std::string command = "";  ///< the name of its program
  std::uint64_t token = 0;   ///< of the hold
};

/// The beginning of the result of a COMMAND that begins now on this host.
[[nodiscard]] run_result result_of_start(std::string command);
/// The result that a value is; nothing if it is another value, or none.
[[nodiscard]] std::optional<run_result> result_in(const published_value& published);
/// Publishes it, for the holder. False if etcd has not answered in time.
[[nodiscard]] bool publish_result(named_handle& of, const run_result& what, limit patience);
/// The same as people and programs read it.
[[nodiscard]] nlohmann::ordered_json json_of(const run_result& what);
/// "ended with 3 at 2026-11-27 11:00:00 UTC on h1".
[[nodiscard]] std::string text_of(const run_result& what);

}  // namespace lockflight::cli
