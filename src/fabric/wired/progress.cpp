#include "fabric/wired/progress.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "base/descriptor.hpp"
#include "fabric/shm/pause.hpp"

namespace lockflight::wired::detail {

void step_lock::pause() { shm::detail::relax(); }

struct progress_thread::running {
  explicit running(transport& of) : its(of), events(of.events()) {
    its.share_with_thread(true);
    thread = std::thread([this] { serve(); });
  }

  /// The rank makes steps itself while it waits or locks. It is quicker, and each step that this
  /// thread makes beside it takes a core from some rank.
  bool rank_is_at_it() {
    constexpr std::uint64_t nap_ns = 50'000;
    const std::uint64_t now = its.steps_made();
    if (now == steps_seen) return false;
    steps_seen = now;
    shm::detail::sleep_for_ns(nap_ns);
    return its.steps_made() != now;
  }

  void serve() {
    // The kernel may wake a thread later by this much: by default 50 us.
    prctl(PR_SET_TIMERSLACK, 1'000UL);
    constexpr std::uint64_t rest_ns = 200'000;
    // For what comes with no event.
    const int most_sleep_ms = events < 0 ? 1 : 50;
    while (!over.load(std::memory_order_relaxed)) {  // nothing else is read from its writer
      pollfd waits[] = {{events, POLLIN, 0}, {wake.get(), POLLIN, 0}};
      poll(waits, 2, most_sleep_ms);
      if (rank_is_at_it()) {
        shm::detail::sleep_for_ns(rest_ns);
        continue;
      }
      if (!its.steps().try_lock()) continue;
      const std::lock_guard hold(its.steps(), std::adopt_lock);
      do {
        while (its.advance()) continue;
      } while (events >= 0 && !its.announces_next());
    }
  }

  transport& its;
  int events;
  descriptor wake{eventfd(0, EFD_CLOEXEC)};
  std::uint64_t steps_seen = 0;
  std::atomic<bool> over = false;
  std::thread thread;
};

progress_thread::progress_thread(transport& of) : running_(std::make_unique<running>(of)) {}

progress_thread::~progress_thread() {
  running_->over = true;
  eventfd_write(running_->wake.get(), 1);
  running_->thread.join();
  running_->its.share_with_thread(false);
}

}  // namespace lockflight::wired::detail
