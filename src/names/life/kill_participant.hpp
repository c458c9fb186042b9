// SIGKILL for the process of a participant that does not end its hold.
#pragma once

#include <cstdint>

#include "names/file/file.hpp"

namespace lockflight::detail {

enum class kill_result : std::uint8_t {
  sent,
  gone,           ///< the participant has left or died
  not_permitted,  ///< the kernel refuses, or it is this process
  elsewhere,      ///< of another PID namespace
};

/// Kills the process of the slot's participant, and the one that it guards, if it is that
/// incarnation. Another process that has the number by now is left: the signal goes through a
/// pidfd, and the start of the process is compared after that was opened.
[[nodiscard]] kill_result kill_participant(const domain_file& file, int slot,
                                           std::uint32_t incarnation);
/// Wakes up a `lockflight run` or a keeper, which look at their hold at each SIGCHLD. Others do not
/// notice it, as they ignore the signal or wait for their children.
void wake_participant(const domain_slot_page& slot);

}  // namespace lockflight::detail
