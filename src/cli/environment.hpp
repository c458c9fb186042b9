// What COMMAND of `lockflight run` finds in its environment, and what a run reads there: which
// locks the runs around it hold.
//
// LOCKFLIGHT_INSIDE has a line for each name that a run around holds, the outermost first:
//
//   DEVICE:INODE OF THE DOMAIN'S FILE  PROCESS  MOMENT  NAME
//
// with a space between the fields. A name may be any bytes but a new line and NUL, so it is the
// last field. At that moment, nanoseconds of CLOCK_MONOTONIC, the process had all its locks: so a
// line says nothing any more once that run has released, whatever process has its number by then.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockflight/domain.hpp"

namespace lockflight::cli {

/// For COMMAND: the names that the handle holds, tokens, unit, and whether a holder died. A run
/// inside of a run inherits nothing of the outer but LOCKFLIGHT_INSIDE.
void set_environment(const domain& in, const named_handle& held, std::uint64_t since_ns);

/// Whether a run has started this process, or an ancestor of it.
[[nodiscard]] bool is_inside_of_a_run();

/// A run around this process, which waits for the end of its COMMAND.
struct run_around {
  std::string name;  ///< of a lock that it holds
  lock_user holder;
};
/// The runs around this process that hold one of these names now, the outermost first.
[[nodiscard]] std::vector<run_around> runs_around(const domain& in,
                                                  const std::vector<std::string>& names);

}  // namespace lockflight::cli
