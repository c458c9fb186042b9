// A file that is read as a whole: claims, machines, profiles, reports, and what /proc says.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <string>
#include <string_view>
#include <system_error>

#include "base/descriptor.hpp"

namespace lockflight {

/// The content of a file, or the output of a pipe. Throws std::system_error with the reason if it
/// cannot be read, is a folder, or has more than `most` bytes, as devices do that never end.
[[nodiscard]] inline std::string whole_file(const std::string& path,
                                            std::size_t most = std::size_t{1} << 30) {
  const auto failed = [&](int error) {
    return std::system_error(error, std::generic_category(), "reading " + path);
  };
  const descriptor from(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!from) throw failed(errno);
  std::string text;
  char part[1 << 16];
  while (true) {
    const ssize_t got = read(from.get(), part, sizeof part);
    if (got == 0) return text;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw failed(errno);
    text.append(part, static_cast<std::size_t>(got));
    if (text.size() > most) throw failed(EFBIG);
  }
}

/// The content of a file, such as one of /proc, as far as it can be read; else nothing.
[[nodiscard]] inline std::string text_if_readable(const std::string& path) {
  const descriptor from(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  char part[4096];
  for (ssize_t got = 1; got > 0;) {
    got = from ? read(from.get(), part, sizeof part) : 0;
    if (got > 0) text.append(part, static_cast<std::size_t>(got));
  }
  return text;
}

/// Calls `visit` with each line, without its end.
template <class Visit>
void for_each_line(std::string_view text, Visit visit) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    visit(line);
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
}

}  // namespace lockflight
