#include "domain/fork.hpp"

#include <pthread.h>

#include <atomic>

namespace lockflight::detail {

namespace {

std::uint64_t next_number() {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

void number_this_thread() {
  if (thread_number == 0) thread_number = next_number();
}

std::mutex& process_mutex() {
  static auto* const mutex = [] {
    auto* const made = new std::mutex;  // never destroyed: threads may outlive static objects
    static std::mutex* forked;
    forked = made;
    pthread_atfork([] { forked->lock(); }, [] { forked->unlock(); },
                   [] {
                     thread_number = 0;  // the one thread of the child
                     forked->unlock();
                   });
    return made;
  }();
  return *mutex;
}

}  // namespace lockflight::detail
