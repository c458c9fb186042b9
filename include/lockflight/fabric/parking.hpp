// Yielding of cores among ranks that share memory: a waiter sleeps until another rank writes, or
// yields while that is quick. The ports of shm and mpi are made of this.
//
// Invariants: a waiter arms at a bell, reads the awaited cell once more, then sleeps; a writer
// writes, then reads `parked`. A fence or an RMW orders both, so no write after that read is slept
// through.
//
// Cost: a write to a cell reads `parked`, and makes a system call if a rank sleeps.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <ctime>

#include "lockflight/rma/layout.hpp"

namespace lockflight::shm::detail {

// On a CPU whose atomic read-modify-write is a full barrier for all accesses (x86's lock prefix),
// the fences that the contract needs beside one cost nothing.
#if defined(__x86_64__) || defined(__i386__)
constexpr bool rmw_is_fence = true;
#else
constexpr bool rmw_is_fence = false;
#endif

/// Wakes the ranks that sleep on some cells of one segment. On cache lines of its own.
struct alignas(128) bell {
  std::atomic<std::uint32_t> parked{0};  ///< how many ranks sleep here, or are about to
  std::atomic<std::uint32_t> rung{0};    ///< the futex word; grows with every ring

  /// A bit of `parked` that is no rank: a fence is needed between a store and the read of `parked`.
  static constexpr std::uint32_t stores_fence = 1u << 31;

  /// Wakes all sleepers. The caller's write to a cell comes before this read of `parked`: a fence
  /// or an RMW lies between, or the sleeper orders the two after arming.
  [[gnu::always_inline]] void ring() {
    if ((parked.load(std::memory_order_relaxed) & ~stores_fence) != 0) [[unlikely]]
      wake();
  }
  /// The same for a caller whose write was a read-modify-write with no fence behind it: a later
  /// load may overtake its store but for x86.
  void ring_after_rmw() {
    if constexpr (!rmw_is_fence) std::atomic_thread_fence(std::memory_order_seq_cst);
    ring();
  }
  /// True if a store needs neither a fence nor a ring.
  [[nodiscard, gnu::always_inline]] bool is_quiet() const {
    return parked.load(std::memory_order_relaxed) == 0;
  }

 private:
  void wake();
};

/// The bells of one rank's segment. A rank mostly sleeps on its queue node, so queue nodes have a
/// bell of their own: if they shared one with the words of the locks at the same rank, each write
/// to such a word would wake that rank, by a system call. The other lines share eight bells.
class bells {
 public:
  [[nodiscard, gnu::always_inline]] bell& of(std::uint32_t index) {
    const std::uint32_t line = index / rma::line_words;
    return line <= rma::most_queue_nodes ? of_nodes_ : of_lines_[line % of_lines_.size()];
  }
  void fence_stores() {
    of_nodes_.parked.fetch_or(bell::stores_fence, std::memory_order_seq_cst);
    for (bell& each : of_lines_)
      each.parked.fetch_or(bell::stores_fence, std::memory_order_seq_cst);
  }
  /// For a change that is no write to a cell.
  void ring_all() {
    of_nodes_.ring();
    for (bell& each : of_lines_) each.ring();
  }

 private:
  bell of_nodes_;
  std::array<bell, 8> of_lines_;
};

/// The sleep of a rank at a bell: arm, read the awaited cell once more, sleep.
class sleeper {
 public:
  sleeper() = default;
  sleeper(const sleeper&) = delete;
  sleeper& operator=(const sleeper&) = delete;
  ~sleeper() {
    if (armed()) disarm();
  }

  [[nodiscard]] bool armed() const { return at_ != nullptr; }
  /// From here on the bell wakes us.
  void arm(bell& at);
  /// Sleeps until the bell rings, not at all if it has rung since arm(), and at most the given
  /// time. Disarmed afterwards.
  void sleep(const timespec& at_most);
  /// Sleeps as sleep() does and stays armed, for a caller that reads the awaited cell once more
  /// after each return and then sleeps again. Writers have seen our mark since arm(), so that read
  /// needs no further fence or membarrier. True if the bell has rung since arm() or since the last
  /// sleep_again(); false if the time was over or a signal came first.
  [[nodiscard]] bool sleep_again(const timespec& at_most);
  /// For a rank that has armed and does not sleep after all.
  void disarm();
  /// Drops the bell without a change to it: for the copy of its parent's sleeper that a child of a
  /// fork has.
  void forget() { at_ = nullptr; }

 private:
  bell* at_ = nullptr;
  std::uint32_t ticket_ = 0;
};

/// True if sched_yield gives the core of this process to no other rank. Where Linux makes each
/// session one group of its scheduler (sched_autogroup), a yield stays within the group, and the
/// launcher of MPICH starts each rank in a session of its own.
[[nodiscard]] bool yields_reach_no_rank();

/// Lets another rank have the core: by sched_yield, or by a short sleep where that reaches no rank.
void give_way();

/// The steps of a rank between two reads of something that may come at once: at first nothing that
/// takes longer than a yield, and then give_way().
class steps_of_wait {
 public:
  /// `crowded`: there are more ranks than cores, so that what is awaited hardly comes before a
  /// yield.
  explicit steps_of_wait(bool crowded = false) : made_(crowded ? reads_before_yield : 0) {}
  void next();

 private:
  // The first reads take about 20 us, if a read takes as long as MPI_Test. A yield on a machine
  // that has other work may take a time slice of that work.
  static constexpr std::uint32_t reads_before_yield = 200;
  static constexpr std::uint32_t reads_before_sleep = 300;

  std::uint32_t made_;
};

/// sched_yield for as long as it pays. A waiting rank yields again at once; another program does
/// not, and a yield to it costs a time slice, a hundred times as long as to sleep and be woken.
/// After such a yield there is none for a while, which grows with each further one.
class short_yields {
 public:
  /// False if there was no yield.
  [[nodiscard]] bool yield();

 private:
  std::uint64_t none_before_ns_ = 0;
  std::uint64_t without_ns_ = 0;  // the pause without yields after the last long one
  std::uint32_t short_ones_ = 0;  // short yields since then
};

}  // namespace lockflight::shm::detail
