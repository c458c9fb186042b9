// The environment of COMMAND of `lockflight run`, and what a run reads there: which
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
#include <optional>
#include <string>
#include <vector>

#include "lockflight/domain.hpp"

namespace lockflight::cli {

/// For COMMAND: the names that the handle holds, tokens, units, and whether a holder died. A run
/// inside of a run inherits nothing of the outer but LOCKFLIGHT_INSIDE, and LOCKFLIGHT_UNIT unless
/// it takes units itself.
void set_environment(const domain& in, const named_handle& held, std::uint64_t since_ns);

/// True if a run has started this process, or an ancestor of it.
[[nodiscard]] bool is_inside_of_a_run();

/// A run around this process that would have to end before this process can have the lock.
struct enclosing_run {
  std::string name;  ///< of the lock
  lock_user holder;
};
/// The first of these names that a run around this process holds now, unless it shares it and this
/// process wants to share it; of a semaphore, if runs around this process hold so many units that
/// those that it takes cannot become free.
[[nodiscard]] std::optional<enclosing_run> run_that_excludes(const domain& in,
                                                             const std::vector<std::string>& names,
                                                             bool shared,
                                                             std::optional<units> of_semaphore);

}  // namespace lockflight::cli
