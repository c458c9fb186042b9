// The thread that serves other nodes while a rank computes.
#pragma once

#include <memory>

#include "fabric/mpi/calls.hpp"
#include "fabric/mpi/segment.hpp"
#include "fabric/network/progress_words.hpp"

namespace lockflight::mpi::detail {

using fabric::detail::progress_by;
using fabric::detail::wanted_progress;

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
/// with its last owner. Collective over `all`, the ranks of a run of several nodes, whose cells a
/// trial may use; throws `unavailable` on all of them where a thread is asked for and MPI does not
/// allow it.
[[nodiscard]] std::shared_ptr<progress_thread> help_while_computing(const communicator& all,
                                                                    segment& cells);

}  // namespace lockflight::mpi::detail
