#include "domain/fork.hpp"

#include <pthread.h>

namespace lockflight::detail {

std::uint64_t fork_epoch = 1;

std::mutex& process_mutex() {
  static auto* const mutex = [] {
    auto* const made = new std::mutex;  // never destroyed: threads may outlive static objects
    static std::mutex* forked;
    forked = made;
    pthread_atfork([] { forked->lock(); }, [] { forked->unlock(); },
                   [] {
                     ++fork_epoch;
                     forked->unlock();
                   });
    return made;
  }();
  return *mutex;
}

}  // namespace lockflight::detail
