// A thread beside the program's own.
#pragma once

#include <signal.h>

#include <thread>
#include <utility>

namespace lockflight::fabric::detail {

/// Runs `body` on a thread that handles none of the program's signals: a program's handlers may
/// rely on the threads that it has itself.
template <class Body>
[[nodiscard]] std::thread thread_without_signals(Body body) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const auto restore = [&] { pthread_sigmask(SIG_SETMASK, &before, nullptr); };
  try {
    std::thread made(std::move(body));
    restore();
    return made;
  } catch (...) {
    restore();
    throw;
  }
}

}  // namespace lockflight::fabric::detail
