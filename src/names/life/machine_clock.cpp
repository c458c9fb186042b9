#include "names/life/machine_clock.hpp"

#include <sys/stat.h>

#include <atomic>
#include <cstdio>
#include <string>

#include "base/whole_file.hpp"
#include "names/file/fork.hpp"

namespace lockflight::detail {
namespace {

ino_t inode_of(const char* space) {
  struct stat s {};
  return stat(space, &s) == 0 ? s.st_ino : 0;
}

std::int64_t shift_of(const char* wanted) noexcept {
  constexpr std::uint64_t first_space = 0xEFFFFFFA;  // the kernel's TIME_NS_INIT_INO: no offsets
  // The file is about the namespace of our children, which is ours unless we have made them another
  // one.
  const std::uint64_t ours = time_space();
  if (ours == 0 || ours == first_space || ours != inode_of("/proc/self/ns/time_for_children"))
    return 0;
  try {
    constexpr std::int64_t second = 1'000'000'000;
    const std::string offsets = text_if_readable("/proc/self/timens_offsets");
    const std::size_t at = offsets.find(wanted);
    long long seconds = 0;
    long long nanoseconds = 0;
    if (at != std::string::npos &&
        std::sscanf(offsets.c_str() + at, "%*s %lld %lld", &seconds, &nanoseconds) == 2)
      return seconds * second + nanoseconds;
  } catch (...) {  // no memory: what is shown may be wrong
  }
  return 0;
}

}  // namespace

std::uint64_t time_space() noexcept { return inode_of("/proc/self/ns/time"); }

std::int64_t clock_shift_ns() noexcept { return shift_of("monotonic"); }

std::int64_t boot_clock_shift_ns() noexcept {
  static std::atomic<std::uint64_t> known_to{0};
  static std::atomic<std::int64_t> shift{0};
  const std::uint64_t now = image();
  if (known_to.load(std::memory_order_acquire) != now) {
    shift.store(shift_of("boottime"), std::memory_order_relaxed);
    known_to.store(now, std::memory_order_release);
  }
  return shift.load(std::memory_order_relaxed);
}

}  // namespace lockflight::detail
