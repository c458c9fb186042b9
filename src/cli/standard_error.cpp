#include "cli/standard_error.hpp"

#include <poll.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "tool/printable.hpp"

namespace lockflight::cli {
namespace {

using clock = std::chrono::steady_clock;

/// Writes without waiting, where the kernel can: another process may have filled a pipe since we
/// asked. Terminals, and pipes before Linux 6, cannot: there that process would have to be quicker
/// than us.
ssize_t write_at_once(std::string_view text) {
  iovec part{.iov_base = const_cast<char*>(text.data()), .iov_len = text.size()};
  constexpr off_t where_it_is = -1;
  const ssize_t written = pwritev2(STDERR_FILENO, &part, 1, where_it_is, RWF_NOWAIT);
  if (written >= 0 || errno == EAGAIN || errno == EINTR || errno == EPIPE) return written;
  return write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace

bool takes_a_line(std::chrono::milliseconds within) {
  const auto until = clock::now() + within;
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - clock::now());
    pollfd error{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
    const int found = poll(&error, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    // A pipe without a reader would send us SIGPIPE, and our death with the lock is told to others.
    if (found == 1) return error.revents == POLLOUT;
    if (found == 0 || errno != EINTR) return false;
  }
}

void write_within(std::string_view text, std::chrono::milliseconds within) {
  const auto until = clock::now() + within;
  while (!text.empty()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - clock::now());
    if (!takes_a_line(std::max(left, std::chrono::milliseconds(0)))) return;
    const ssize_t written = write_at_once(text);
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
    if (written < 0 && errno != EAGAIN && errno != EINTR) return;
    if (written <= 0 && clock::now() >= until) return;
  }
}

void say(const std::string& line) {
  constexpr std::chrono::milliseconds for_a_reader{100};
  write_within("lockflight run: " + tool::printable(line) + "\n", for_a_reader);
}

}  // namespace lockflight::cli
