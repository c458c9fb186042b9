// How ranks that share memory give way to each other: sleeping until somebody writes, and yielding
// while that is quick. What the ports of such fabrics are made of.
#pragma once

#include <atomic>
#include <cstdint>
#include <ctime>

namespace lockflight::shm::detail {

/// Where the ranks that sleep on cells of one segment are woken: one a rank, on lines of its own.
struct alignas(128) bell {
  std::atomic<std::uint32_t> parked{0};  ///< how many sleep, or are about to
  std::atomic<std::uint32_t> rung{0};    ///< the futex word; grows with every ring

  /// Wakes all who sleep. The caller's write to a cell comes before this look at `parked`: either a
  /// fence or an RMW lies between, or the sleeper makes it so after arming.
  [[gnu::always_inline]] void ring() {
    if (parked.load(std::memory_order_relaxed) != 0) [[unlikely]]
      wake();
  }

 private:
  void wake();
};

/// One rank's way to sleep at a bell: arm, look once more at what is awaited, sleep. No write after
/// that look is slept through.
class sleeper {
 public:
  sleeper() = default;
  sleeper(const sleeper&) = delete;
  sleeper& operator=(const sleeper&) = delete;
  ~sleeper() {
    if (armed()) disarm();
  }

  [[nodiscard]] bool armed() const { return at_ != nullptr; }
  /// From here on the bell rings for us.
  void arm(bell& at);
  /// Until the bell rings, unless it has since arm(); not longer than given. Disarmed afterwards.
  void sleep(const timespec& at_most);
  /// Not to sleep after all.
  void disarm();

 private:
  bell* at_ = nullptr;
  std::uint32_t ticket_ = 0;
};

/// sched_yield for as long as it pays. Ranks that wait give way again at once; another program does
/// not: a yield to it costs a time slice, a hundred times what it takes to sleep and be woken.
/// After such a yield this does without for a while, which grows as long as there are more of them.
class short_yields {
 public:
  /// False if it did not yield.
  [[nodiscard]] bool yield();

 private:
  std::uint64_t none_before_ns_ = 0;
  std::uint64_t without_ns_ = 0;  // so long, after the last long one
  std::uint32_t short_ones_ = 0;  // since then
};

}  // namespace lockflight::shm::detail
