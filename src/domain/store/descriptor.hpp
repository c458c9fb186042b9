// File descriptors that are closed when nobody needs them, and that are never 0, 1 or 2: a program
// that was started without standard error would write its messages into what we have open there.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <utility>

namespace lockflight::detail {

class descriptor {
 public:
  descriptor() = default;
  explicit descriptor(int fd) : fd_(fd) {}
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

  explicit operator bool() const { return fd_ >= 0; }
  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

/// A copy of the descriptor that is 3 or above, closed by exec; -1 and errno if there is none.
[[nodiscard]] inline int above_standard(int fd) {
  constexpr int first_after_standard = 3;
  return fcntl(fd, F_DUPFD_CLOEXEC, first_after_standard);
}

}  // namespace lockflight::detail
