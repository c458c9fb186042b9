// With MPI_THREAD_MULTIPLE the threads of a process share its side of all windows. One thread is in
// there at a time, and one that waits lets the others in.
#pragma once

#include <atomic>
#include <cstdint>

namespace lockflight::mpi_preload {

namespace detail {

enum class callers : std::uint8_t { not_asked, one_at_a_time, many };
extern constinit std::atomic<callers> callers_of_mpi;
[[nodiscard]] callers ask_for_callers();

}  // namespace detail

/// True if threads may call MPI at the same time. Asked when the first window is made; it is not
/// needed before.
[[nodiscard]] inline bool many_threads() {
  detail::callers are = detail::callers_of_mpi.load(std::memory_order_relaxed);
  if (are == detail::callers::not_asked) [[unlikely]]
    are = detail::ask_for_callers();
  return are == detail::callers::many;
}
/// The same without a call of MPI.
[[nodiscard]] inline bool many_threads_or_unknown() {
  return detail::callers_of_mpi.load(std::memory_order_relaxed) != detail::callers::one_at_a_time;
}

/// While this object exists, its thread is the one that is in a window.
class [[nodiscard]] entry {
 public:
  entry();
  ~entry();
  entry(const entry&) = delete;
  entry& operator=(const entry&) = delete;
};

/// For the thread that is in a window, and waits: another one may come in between two reads. The
/// port has nothing pending then (C9).
void let_others_in();

/// While this object exists, the thread that was in a window is not: it makes a call that may wait
/// for another thread.
class [[nodiscard]] outside {
 public:
  outside();
  ~outside();
  outside(const outside&) = delete;
  outside& operator=(const outside&) = delete;
};

}  // namespace lockflight::mpi_preload
