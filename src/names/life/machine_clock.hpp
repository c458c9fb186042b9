// The clock of the times that participants show to each other: CLOCK_MONOTONIC of the machine,
// which is the same in all namespaces of time. A namespace shifts the clock of its processes.
#pragma once

#include <cstdint>

namespace lockflight::detail {

/// By how much the clock of this process is ahead of the machine's; 0 if /proc does not say.
[[nodiscard]] std::int64_t clock_shift_ns() noexcept;

/// The same of CLOCK_BOOTTIME. Read once in each process image.
[[nodiscard]] std::int64_t boot_clock_shift_ns() noexcept;

/// The number of the namespace of time whose clocks this process reads; 0 if /proc does not say, or
/// the kernel has no such namespaces.
[[nodiscard]] std::uint64_t time_space() noexcept;

/// A moment of this process's clock on that of the machine, and back. 0 stays 0: not known.
[[nodiscard]] constexpr std::uint64_t to_machine(std::uint64_t own_ns, std::int64_t shift_ns) {
  return own_ns == 0 ? 0 : own_ns - static_cast<std::uint64_t>(shift_ns);
}
[[nodiscard]] constexpr std::uint64_t from_machine(std::uint64_t ns, std::int64_t shift_ns) {
  return ns == 0 ? 0 : ns + static_cast<std::uint64_t>(shift_ns);
}

}  // namespace lockflight::detail
