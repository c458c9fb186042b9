// With MPI_THREAD_MULTIPLE the threads of a process share its side of all windows. One thread is in
// there at a time, and one that waits lets the others in.
#pragma once

namespace lockflight::mpi_preload {

/// Whether threads may call MPI at the same time. Asked when the first window is made; it is not
/// needed before.
[[nodiscard]] bool many_threads();

/// While it exists, this thread is the one that is in a window.
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

/// While it exists, the thread that was in a window is not: it calls something that may wait for
/// what another thread holds.
class [[nodiscard]] outside {
 public:
  outside();
  ~outside();
  outside(const outside&) = delete;
  outside& operator=(const outside&) = delete;
};

}  // namespace lockflight::mpi_preload
