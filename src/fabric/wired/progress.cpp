#include "fabric/wired/progress.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>

#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

#include "base/descriptor.hpp"
#include "base/thread_without_signals.hpp"
#include "fabric/shm/pause.hpp"

namespace lockflight::wired::detail {

void step_lock::pause() { shm::detail::relax(); }

struct progress_thread::running {
  explicit running(transport& of) : its(of), events(of.events()) {
    its.share_with_thread(true);
    thread = thread_without_signals([this] { serve(); });
  }

  /// True if the rank itself makes steps, as it does while it waits or locks. The rank is quicker,
  /// and each step that this thread makes at the same time takes a core from a rank.
  bool rank_makes_progress() {
    constexpr std::uint64_t nap_ns = 50'000;
    const std::uint64_t now = its.steps_made();
    if (now == steps_seen) return false;
    steps_seen = now;
    shm::detail::sleep_for_ns(nap_ns);
    return its.steps_made() != now;
  }

  /// Makes some steps, and returns for how long to sleep after them, in milliseconds. The rank
  /// waits for the lock meanwhile.
  int serve_some() {
    constexpr int most_steps = 16;
    if (!its.steps().try_lock()) return 0;
    const std::lock_guard hold(its.steps(), std::adopt_lock);
    try {
      for (int i = 0; i < most_steps; ++i)
        if (!its.advance()) return its.longest_sleep_ms();
    } catch (const std::exception& e) {
      its.set_fault(-1, e.what());  // the rank notices with its next step
      over = true;
    }
    return 0;
  }

  void serve() {
    // The kernel may wake a thread later by this much: by default 50 us.
    prctl(PR_SET_TIMERSLACK, 1'000UL);
    constexpr std::uint64_t rest_ns = 200'000;
    int sleep_ms = 0;
    while (!over.load(std::memory_order_relaxed)) {  // nothing else is read from its writer
      pollfd waits[] = {{events, POLLIN, 0}, {wake.get(), POLLIN, 0}};
      poll(waits, 2, sleep_ms);
      if (rank_makes_progress())
        shm::detail::sleep_for_ns(rest_ns);
      else
        sleep_ms = serve_some();
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
