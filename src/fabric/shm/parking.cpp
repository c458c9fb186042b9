#include "lockflight/fabric/parking.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>

#include "fabric/shm/pause.hpp"
#include "lockflight/rma/assert.hpp"

namespace lockflight::shm::detail {

void bell::wake() {
  rung.fetch_add(1, std::memory_order_seq_cst);
  syscall(SYS_futex, &rung, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

// The ticket is read before the mark is set: a ring between the two makes sleep() return at once.
void sleeper::arm(bell& at) {
  rma::ensure(!armed(), "one sleeps at one bell");
  ticket_ = at.rung.load(std::memory_order_seq_cst);
  at.parked.fetch_add(1, std::memory_order_seq_cst);
  // Our next read of the cell comes after our mark, also where an RMW is no fence for later loads.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  at_ = &at;
}

void sleeper::disarm() {
  rma::ensure(armed(), "a rank that disarms has armed");
  at_->parked.fetch_sub(1, std::memory_order_seq_cst);
  at_ = nullptr;
}

void sleeper::sleep(const timespec& at_most) {
  rma::ensure(armed(), "a rank that sleeps has armed");
  syscall(SYS_futex, &at_->rung, FUTEX_WAIT, ticket_, &at_most, nullptr, 0);
  disarm();
}

// The new ticket comes before the caller's next read of the cell: a write that this read misses
// rings after the ticket, so that the next sleep returns at once.
bool sleeper::sleep_again(const timespec& at_most) {
  rma::ensure(armed(), "a rank that sleeps has armed");
  syscall(SYS_futex, &at_->rung, FUTEX_WAIT, ticket_, &at_most, nullptr, 0);
  const std::uint32_t slept_through = ticket_;
  ticket_ = at_->rung.load(std::memory_order_seq_cst);
  return ticket_ != slept_through;
}

// Allocates nothing: the first wait of a process may be within a collective call that the others
// complete, where an exception on this rank alone would let them wait for ever.
bool yields_reach_no_rank() {
  static const bool none = [] {
    char are_groups = '0';
    const int file = open("/proc/sys/kernel/sched_autogroup_enabled", O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
      if (read(file, &are_groups, 1) != 1) are_groups = '0';
      close(file);
    }
    return are_groups != '0' && getsid(0) == getpid();
  }();
  return none;
}

void give_way() {
  // The kernel adds its timer slack, usually 50 us.
  constexpr std::uint64_t short_sleep_ns = 10'000;
  if (yields_reach_no_rank())
    sleep_for_ns(short_sleep_ns);
  else
    sched_yield();
}

void steps_of_wait::next() {
  if (made_ >= reads_before_sleep) return give_way();
  ++made_ > reads_before_yield ? static_cast<void>(sched_yield()) : relax();
}

bool short_yields::yield() {
  // The limit lies between the microseconds of a yield among waiting ranks and the milliseconds of
  // a time slice.
  constexpr std::uint64_t long_yield_ns = 500'000;
  // A single long yield may be an accident of the machine or of a hypervisor, and without yields
  // every rank that hands over to us pays for a wake-up. So the pause is short at first and longer
  // each time that a later yield is long too.
  constexpr std::uint64_t shortest_ns = 1'000'000;
  constexpr std::uint64_t longest_ns = 256'000'000;
  constexpr std::uint32_t short_ones_that_acquit = 1'000;
  const std::uint64_t before = now_ns();
  if (before < none_before_ns_) return false;
  sched_yield();
  const std::uint64_t after = now_ns();
  if (after - before > long_yield_ns) {
    without_ns_ = std::clamp(4 * without_ns_, shortest_ns, longest_ns);
    none_before_ns_ = after + without_ns_;
    short_ones_ = 0;
  } else if (++short_ones_ == short_ones_that_acquit) {
    without_ns_ = 0;
  }
  return true;
}

}  // namespace lockflight::shm::detail
