// The thread that serves other nodes while a rank computes.
#pragma once

#include <memory>

#include "fabric/wired/transport.hpp"

namespace lockflight::wired::detail {

/// A thread that sleeps on the transport's event descriptor, and serves what has arrived while the
/// rank itself makes no step.
class progress_thread {
 public:
  explicit progress_thread(transport& of);
  ~progress_thread();
  progress_thread(const progress_thread&) = delete;
  progress_thread& operator=(const progress_thread&) = delete;

 private:
  struct running;
  std::unique_ptr<running> running_;
};

}  // namespace lockflight::wired::detail
