// Standard input, output and error of the program, which may have been started without them.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <initializer_list>

namespace lockflight::tool {

/// The first thing that main does. Opens /dev/null in place of each standard stream that is closed,
/// so that no other file gets its number and with it what is written there. It is opened for the
/// opposite: reading standard input and writing the others fail as they do on closed ones. A
/// command that the program becomes or runs finds them closed, as the caller left them.
inline void fill_standard_streams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(fd, F_GETFD) >= 0) continue;
    // The lowest free number is this one.
    const int wanted = fd == STDIN_FILENO ? O_WRONLY : O_RDONLY;
    if (open("/dev/null", wanted | O_CLOEXEC) < 0) return;
  }
}

}  // namespace lockflight::tool
