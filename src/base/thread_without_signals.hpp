// A thread beside the program's own.
#pragma once

#include <thread>
#include <utility>

#include "base/signals_held.hpp"

namespace lockflight {

/// Runs `body` on a thread that handles none of the program's signals: a program's handlers may
/// rely on the threads that it has itself.
template <class Body>
[[nodiscard]] std::thread thread_without_signals(Body body) {
  const signals_held inherited_by_the_thread;
  return std::thread(std::move(body));
}

}  // namespace lockflight
