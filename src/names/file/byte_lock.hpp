// Locks of single bytes of a file, which the kernel keeps for an open file (fcntl, F_OFD_SETLK):
// they end when the last process that has that open file ends, becomes another program, or closes
// it and unmaps what it has mapped from it. So a byte that one process has locked tells all others,
// also those in other namespaces, that it is there. A lock excludes no read and no write.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <optional>

namespace lockflight::detail {

enum class byte_lock : std::uint8_t {
  taken,     ///< this open file has it, now or before
  anothers,  ///< another open file has it
  refused,   ///< errno says why: this is no file that can be locked
};

namespace of_byte {
inline int call(int fd, off_t offset, int command, short& type, off_t count = 1) {
  struct flock what {};
  what.l_type = type;
  what.l_whence = SEEK_SET;
  what.l_start = offset;
  what.l_len = count;
  const int done = fcntl(fd, command, &what);
  type = what.l_type;
  return done;
}
}  // namespace of_byte

/// Tries to lock the byte, or so many bytes from there on, without waiting. Async-signal-safe, as
/// the other functions here.
[[nodiscard]] inline byte_lock lock_byte(int fd, off_t offset, off_t count = 1) {
  short type = F_WRLCK;
  if (of_byte::call(fd, offset, F_OFD_SETLK, type, count) == 0) return byte_lock::taken;
  return errno == EAGAIN || errno == EACCES ? byte_lock::anothers : byte_lock::refused;
}
/// The same with a descriptor that can only read; others share the byte, and do not lock it.
inline void share_byte(int fd, off_t offset) {
  short type = F_RDLCK;
  static_cast<void>(of_byte::call(fd, offset, F_OFD_SETLK, type));
}
/// Sleeps until no other open file has locked the byte, at once if none has, and shares it then.
/// Returns early if the kernel refuses that. The descriptor may be one that can only read.
inline void await_byte(int fd, off_t offset) {
  short type = F_RDLCK;
  while (of_byte::call(fd, offset, F_OFD_SETLKW, type) != 0 && errno == EINTR) {
  }
}
inline void unlock_byte(int fd, off_t offset, off_t count = 1) {
  short type = F_UNLCK;
  static_cast<void>(of_byte::call(fd, offset, F_OFD_SETLK, type, count));
}
/// True if another open file has locked the byte; nothing if the kernel does not say.
[[nodiscard]] inline std::optional<bool> is_byte_locked(int fd, off_t offset) {
  short type = F_WRLCK;
  if (of_byte::call(fd, offset, F_OFD_GETLK, type) != 0) return std::nullopt;
  return type != F_UNLCK;
}

}  // namespace lockflight::detail
