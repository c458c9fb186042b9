// Writing without waiting for the reader: standard error may be a pipe whose reader is stopped, or
// a terminal that Ctrl-S has stopped. A process that others wait for must not wait for such a
// reader.
#pragma once

#include <poll.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <string_view>

namespace lockflight {
namespace detail {

/// A write to a pipe whose reader has gone would end the process. For this thread and this time it
/// is an error.
class without_sigpipe {
 public:
  without_sigpipe() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~without_sigpipe() {
    constexpr timespec now{};
    const bool was_blocked = sigismember(&before_, SIGPIPE) == 1;
    while (!was_blocked && sigtimedwait(&pipe_, nullptr, &now) == SIGPIPE) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  without_sigpipe(const without_sigpipe&) = delete;
  without_sigpipe& operator=(const without_sigpipe&) = delete;

 private:
  sigset_t pipe_{};
  sigset_t before_{};
};

/// Writes without waiting, if the kernel can: another process may have filled a pipe since we
/// polled it. The kernel cannot for terminals, and for pipes before Linux 6: there the write waits
/// only if that process is quicker than us. A write to a regular file does not wait, and some file
/// systems refuse to write without waiting.
inline ssize_t write_at_once(int to, std::string_view text) {
  struct stat of {};
  if (fstat(to, &of) == 0 && S_ISREG(of.st_mode)) return write(to, text.data(), text.size());
  iovec part{.iov_base = const_cast<char*>(text.data()), .iov_len = text.size()};
  constexpr off_t where_it_is = -1;
  const ssize_t written = pwritev2(to, &part, 1, where_it_is, RWF_NOWAIT);
  if (written >= 0 || errno == EAGAIN || errno == EINTR || errno == EPIPE) return written;
  return write(to, text.data(), text.size());
}

}  // namespace detail

/// True if the descriptor takes text within that time.
[[nodiscard]] inline bool takes_text(int descriptor, std::chrono::milliseconds within) {
  using clock = std::chrono::steady_clock;
  const auto until = clock::now() + within;
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - clock::now());
    pollfd its{.fd = descriptor, .events = POLLOUT, .revents = 0};
    const int found = poll(&its, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    if (found == 1) return its.revents == POLLOUT;
    if (found == 0 || errno != EINTR) return false;
  }
}

/// Writes the text as it is, as far as the descriptor takes it within that time. Returns how many
/// bytes were written. A reader that is gone sends this process no SIGPIPE.
inline std::size_t write_within(int to, std::string_view text, std::chrono::milliseconds within) {
  using clock = std::chrono::steady_clock;
  const detail::without_sigpipe here;
  const auto until = clock::now() + within;
  const std::size_t all = text.size();
  while (!text.empty()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - clock::now());
    if (!takes_text(to, std::max(left, std::chrono::milliseconds(0)))) break;
    const ssize_t written = detail::write_at_once(to, text);
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
    if (written < 0 && errno != EAGAIN && errno != EINTR) break;
    if (written <= 0 && clock::now() >= until) break;
  }
  return all - text.size();
}

}  // namespace lockflight
