#include "domain/store/fork.hpp"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#include "lockflight/rma/assert.hpp"

namespace lockflight::detail {
namespace {

std::uint64_t next_number() {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

// Never destroyed: threads may outlive static objects.
struct of_process {
  std::mutex mutex;
  std::array<void (*)(), 4> in_children{};
  std::array<int, 64> to_close{};  // 1 + the descriptor, or 0
};
of_process* forked;
std::atomic<int> known_id{0};
std::atomic<std::uint64_t> forks_so_far{0};

void in_child() {
  known_id.store(0, std::memory_order_relaxed);
  forks_so_far.fetch_add(1, std::memory_order_relaxed);
  thread_number = 0;  // the one thread of the child
  for (auto* const each : forked->in_children)
    if (each != nullptr) each();
  for (int& each : forked->to_close)
    if (each != 0) close(std::exchange(each, 0) - 1);
  forked->mutex.unlock();
}

of_process& this_process() {
  static auto* const ours = [] {
    auto* const made = new of_process;
    forked = made;
    pthread_atfork([] { forked->mutex.lock(); }, [] { forked->mutex.unlock(); }, in_child);
    return made;
  }();
  return *ours;
}

}  // namespace

int process_id() {
  int known = known_id.load(std::memory_order_relaxed);
  if (known != 0) return known;
  static_cast<void>(this_process());  // a fork is noticed from here on
  known = getpid();
  known_id.store(known, std::memory_order_relaxed);
  return known;
}

std::uint64_t forks() {
  static_cast<void>(this_process());
  return forks_so_far.load(std::memory_order_relaxed);
}

void number_this_thread() {
  if (thread_number == 0) thread_number = next_number();
}

std::mutex& process_mutex() { return this_process().mutex; }

closed_in_children::closed_in_children(int fd) : fd_(fd) {
  of_process& ours = this_process();
  const std::scoped_lock hold(ours.mutex);
  const auto at = std::find(ours.to_close.begin(), ours.to_close.end(), 0);
  if (at != ours.to_close.end()) *at = fd_ + 1;
}

closed_in_children::~closed_in_children() {
  of_process& ours = this_process();
  const std::scoped_lock hold(ours.mutex);
  const auto at = std::find(ours.to_close.begin(), ours.to_close.end(), fd_ + 1);
  if (at != ours.to_close.end()) *at = 0;
}

void call_in_children(void (*what)()) {
  of_process& ours = this_process();
  const std::scoped_lock hold(ours.mutex);
  const auto at = std::find_if(ours.in_children.begin(), ours.in_children.end(),
                               [&](auto* each) { return each == nullptr || each == what; });
  rma::ensure(at != ours.in_children.end(), "there is room for what is called in children");
  *at = what;
}

}  // namespace lockflight::detail
