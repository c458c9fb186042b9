// Signals that the parent has set to be ignored in this process, as nohup(1) does, and shells for
// commands in the background. These signals stay ignored.
#pragma once

#include <csignal>

namespace lockflight {

[[nodiscard]] inline bool is_ignored(int signal_number) {
  struct sigaction now {};
  return sigaction(signal_number, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

}  // namespace lockflight
