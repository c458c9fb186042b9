// Who serves other nodes while a rank computes.
#pragma once

#include <cstdint>
#include <memory>

#include "fabric/mpi/calls.hpp"

namespace lockflight::mpi::detail {

enum class progress_by : std::uint8_t { calls, thread, trial };

/// As LOCKFLIGHT_PROGRESS says: `calls`, which is the default, `thread` or `auto`. Throws
/// std::invalid_argument on another word.
[[nodiscard]] progress_by wanted_progress();

/// A thread that makes a step of MPI's progress when something arrives over TCP, and else every
/// few milliseconds, or every one where MPI watches no socket.
class progress_thread {
 public:
  progress_thread();
  ~progress_thread();
  progress_thread(const progress_thread&) = delete;
  progress_thread& operator=(const progress_thread&) = delete;

 private:
  struct running;
  std::unique_ptr<running> running_;
};

/// This process's thread, where LOCKFLIGHT_PROGRESS and the trial want one; null if not. It ends
/// with its last owner. Collective over `all`, the ranks of a run of several nodes; throws
/// `unavailable` on all of them where a thread is asked for and MPI does not allow it.
[[nodiscard]] std::shared_ptr<progress_thread> help_while_computing(const communicator& all);

}  // namespace lockflight::mpi::detail
