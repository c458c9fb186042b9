// Who serves other nodes while a rank computes.
#pragma once

#include <memory>

#include "fabric/ucx/worker.hpp"

namespace lockflight::ucx::detail {

/// A thread that sleeps on the worker's event descriptor, and serves what has arrived while the
/// rank itself makes no step of the worker.
class progress_thread {
 public:
  explicit progress_thread(worker& of);
  ~progress_thread();
  progress_thread(const progress_thread&) = delete;
  progress_thread& operator=(const progress_thread&) = delete;

 private:
  struct running;
  std::unique_ptr<running> running_;
};

}  // namespace lockflight::ucx::detail
