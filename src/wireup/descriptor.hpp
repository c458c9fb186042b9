// File descriptors that are kept beyond the function that opened them.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace lockflight {

/// The same file under a descriptor above those of standard input, output and error. A process that
/// was started without one of these gets its number for the next file that it opens, and whatever
/// is written to standard error would go into that file. Takes what `open` and its like return: a
/// failed call stays one, with its errno. Closed on exec.
[[nodiscard]] inline int above_standard(int fd) {
  if (fd < 0 || fd > STDERR_FILENO) return fd;
  const int higher = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int error = errno;
  close(fd);
  errno = error;
  return higher;
}

}  // namespace lockflight
