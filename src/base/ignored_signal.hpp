// Signals that whoever started this process has it ignore, as nohup(1) does, and shells for what
// runs in the background. They stay ignored.
#pragma once

#include <csignal>

namespace lockflight {

[[nodiscard]] inline bool is_ignored(int signal_number) {
  struct sigaction now {};
  return sigaction(signal_number, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

}  // namespace lockflight
