// Standard descriptors that are closed when the program starts.
#pragma once

#include <fcntl.h>
#include <unistd.h>

namespace lockflight::cli {

/// Occupies each of the descriptors 0, 1 and 2 that is closed. Without this the first file that the
/// program opens, such as a domain, would be its standard error, and a message would be written
/// into it.
///
/// What is opened can be neither read nor written, which fails as with a closed descriptor. A
/// command that the program becomes or starts finds the descriptor closed, as under env(1) and
/// flock(1).
inline void fill_closed_descriptors() {
  constexpr int environment_failed = 3;
  for (const int each : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(each, F_GETFD) >= 0) continue;
    // The lowest descriptor that is free is this one, since those below it are open.
    if (open("/", O_PATH | O_CLOEXEC) != each) _exit(environment_failed);
  }
}

}  // namespace lockflight::cli
