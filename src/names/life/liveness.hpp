// The kernel's answers about a thread or a process of this machine, now: a process may enter other
// namespaces at any time. slots.cpp decides from it who lives.
#pragma once

#include <cstdint>
#include <optional>

namespace lockflight::detail {

/// A thread. Numbers are used again; together with its start they name one thread of one namespace
/// until the machine restarts.
struct thread_identity {
  std::int32_t pid = 0;
  std::int32_t tid = 0;
  std::uint64_t born = 0;   ///< in ticks since the boot; 0: not known
  std::uint64_t space = 0;  ///< the process's namespaces: see our_space

  /// The thread in a word: the numbers, below the kernel's limit of 2^22, and a part of the
  /// namespace's number.
  [[nodiscard]] std::uint64_t owner() const {
    return space << space_at | static_cast<std::uint64_t>(pid) << 22 |
           static_cast<std::uint64_t>(tid);
  }
  [[nodiscard]] static thread_identity from(std::uint64_t owner, std::uint64_t born) {
    constexpr std::uint64_t number = (std::uint64_t{1} << 22) - 1;
    return {static_cast<std::int32_t>(owner >> 22 & number),
            static_cast<std::int32_t>(owner & number), born};
  }
  /// True if a thread of that owner() is of these namespaces. False if `space` is 0.
  [[nodiscard]] static bool is_of(std::uint64_t space, std::uint64_t owner) {
    return space != 0 && owner >> space_at == (space << space_at) >> space_at;
  }
  static constexpr int space_at = 44;
};

enum class life : std::uint8_t {
  living,
  stopped,  ///< by a signal or a debugger
  gone,
  unknown,  ///< /proc says nothing about it
};

/// A thread alone, or with all that its process has: a process lives until all of its threads have
/// ended and the kernel has closed its files, since what it guards may be locked or written through
/// these.
enum class extent : std::uint8_t { thread, process };

/// The first thread of a process of our namespaces.
[[nodiscard]] thread_identity first_thread_of(std::int32_t pid) noexcept;
/// The calling thread. Async-signal-safe.
[[nodiscard]] thread_identity this_thread() noexcept;
/// A number for our namespace of processes, in which a thread has its number, together with that of
/// time, in which /proc says when it started. 0: there is no /proc of our namespace of processes,
/// so that nothing in it is about us. Reads four files of /proc.
[[nodiscard]] std::uint64_t our_space() noexcept;
/// The result of our_space() at most a tenth of a second ago: for the display of many slots only.
[[nodiscard]] std::uint64_t recent_space() noexcept;
/// True if a thread of that owner() has its number in our namespace of processes. Reads /proc if
/// the namespaces differ. For display only: the result is false if /proc does not say.
[[nodiscard]] bool is_numbered_here(std::uint64_t owner) noexcept;
/// The life of a thread of our namespaces, or of its process. Reads a file of /proc, some
/// microseconds. A thread that is ending counts as gone: it runs no more instructions of its
/// program.
[[nodiscard]] life life_of(const thread_identity& who, extent what) noexcept;
/// True if a thread of that number is there: one system call. A process that has ended and was not
/// waited for is there.
[[nodiscard]] bool is_there(const thread_identity& who) noexcept;

/// How often the process maps the beginning of the file that this process maps at `ours`; nothing
/// if we may not know. A process that has become another program by exec is the same thread, but
/// has none of its earlier mappings.
[[nodiscard]] std::optional<int> mappings_of(std::int32_t pid, const void* ours);

}  // namespace lockflight::detail
