// A file that is read as a whole: claims, machines, profiles, reports.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <string>
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

}  // namespace lockflight
