#include "mpi_preload/threads.hpp"

#include <mpi.h>
#include <sched.h>

#include <atomic>
#include <mutex>

namespace lockflight::mpi_preload {
namespace {

class gate {
 public:
  void enter() {
    outside_.fetch_add(1, std::memory_order_relaxed);
    inside_.lock();
    outside_.fetch_sub(1, std::memory_order_relaxed);
    entered_.fetch_add(1, std::memory_order_relaxed);
  }
  void leave() { inside_.unlock(); }

  // A waiting thread leaves only if another wants to enter, and comes back after that one has
  // entered. With a mutex alone the waiting thread would have it again long before the woken one,
  // which may bring what it waits for.
  void let_others_in() {
    if (outside_.load(std::memory_order_relaxed) == 0) return;
    const unsigned before = entered_.load(std::memory_order_relaxed);
    leave();
    while (outside_.load(std::memory_order_relaxed) != 0 &&
           entered_.load(std::memory_order_relaxed) == before)
      sched_yield();
    enter();
  }

 private:
  std::mutex inside_;
  std::atomic<int> outside_{0};  // at the mutex
  std::atomic<unsigned> entered_{0};
};

gate one_at_a_time;

}  // namespace

namespace detail {

constinit std::atomic<callers> callers_of_mpi{callers::not_asked};

callers ask_for_callers() {
  int level = MPI_THREAD_SINGLE;
  PMPI_Query_thread(&level);
  const callers are = level == MPI_THREAD_MULTIPLE ? callers::many : callers::one_at_a_time;
  callers_of_mpi.store(are, std::memory_order_relaxed);
  return are;
}

}  // namespace detail

entry::entry() {
  if (many_threads()) one_at_a_time.enter();
}
entry::~entry() {
  if (many_threads()) one_at_a_time.leave();
}

void let_others_in() {
  if (many_threads()) one_at_a_time.let_others_in();
}

outside::outside() {
  if (many_threads()) one_at_a_time.leave();
}
outside::~outside() {
  if (many_threads()) one_at_a_time.enter();
}

}  // namespace lockflight::mpi_preload
