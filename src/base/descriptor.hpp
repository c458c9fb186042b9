// File descriptors that outlive the function that opened them. They are never 0, 1 or 2: a process
// that was started without standard error gets its number for the next file that it opens, and all
// texts for standard error would go into that file.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace lockflight {

/// The same file under a descriptor above those of standard input, output and error. Takes the
/// result of `open` and its like: a failed call stays one, with its errno. If no descriptor is
/// left, the file is closed and the result is -1. The descriptor is closed on exec.
[[nodiscard]] inline int above_standard(int fd) {
  if (fd < 0 || fd > STDERR_FILENO) return fd;
  const int higher = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int error = errno;
  close(fd);
  errno = error;
  return higher;
}

/// Owns a file descriptor, or none.
class descriptor {
 public:
  descriptor() = default;
  /// Takes what `open` and its like return, and moves it above those of standard input, output and
  /// error. A failed call leaves the object empty and errno as it is; so does a move that fails,
  /// with the errno of fcntl.
  explicit descriptor(int fd) : fd_(above_standard(fd)) {}
  ~descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  descriptor(descriptor&& other) noexcept : fd_(other.release()) {}
  descriptor& operator=(descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;

  [[nodiscard]] explicit operator bool() const { return fd_ >= 0; }
  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

}  // namespace lockflight
