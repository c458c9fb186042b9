// A thread that no signal disturbs for a while.
#pragma once

#include <pthread.h>
#include <signal.h>

namespace lockflight {

/// While this object exists, no signal stops or interrupts its thread, except SIGSTOP.
class signals_held {
 public:
  signals_held() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~signals_held() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  signals_held(const signals_held&) = delete;
  signals_held& operator=(const signals_held&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace lockflight
