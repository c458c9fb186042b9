// A small file that is written anew as a whole: a reader sees the old content or the new one.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "base/descriptor.hpp"

namespace lockflight {

/// Says whether the content must survive a loss of power.
enum class durability : std::uint8_t { none, disk };

namespace detail {

/// Writes the content to a new file. False if that is not possible; errno says why.
[[nodiscard]] inline bool write_new_file(const std::string& path, std::string_view content,
                                         mode_t mode, durability lasts) {
  const descriptor to(
      open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
  if (!to) return false;
  while (!content.empty()) {
    const ssize_t done = write(to.get(), content.data(), content.size());
    if (done < 0 && errno != EINTR) return false;
    if (done > 0) content.remove_prefix(static_cast<std::size_t>(done));
  }
  return lasts == durability::none || fsync(to.get()) == 0;
}

}  // namespace detail

/// True if replace_file puts the file in the place of nothing else than a regular file: it would as
/// well replace a device, or a link such as /dev/stdout.
[[nodiscard]] inline bool may_be_replaced(const std::string& path) {
  struct stat is {};
  return !path.empty() && (lstat(path.c_str(), &is) != 0 || S_ISREG(is.st_mode));
}

/// Replaces a file's content, which is first written to a file beside it, under its name and a ~.
/// False if that is not possible; errno says why, and the old content stays.
[[nodiscard]] inline bool replace_file(const std::string& path, std::string_view content,
                                       mode_t mode, durability lasts = durability::none) {
  const std::string made = path + "~";
  // Removes a file that an earlier writer has left when it was killed, or that another program has
  // put there.
  if (unlink(made.c_str()) != 0 && errno != ENOENT) return false;
  if (detail::write_new_file(made, content, mode, lasts) &&
      std::rename(made.c_str(), path.c_str()) == 0)
    return true;
  const int why = errno;
  unlink(made.c_str());
  errno = why;
  return false;
}

}  // namespace lockflight
