// How ranks wait: spin, then yield, then park.
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>
#include <stdexcept>

#include "segment.hpp"
#include "waiting.hpp"

namespace lockflight::shm {

namespace {

void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#endif
}

// A sleeper looks up this often whether the run was aborted; nothing else depends on it.
constexpr timespec abort_check{0, 100'000'000};

// Between the microseconds that a turn around waiting ranks takes and the milliseconds of a slice.
constexpr std::uint64_t long_yield_ns = 500'000;
constexpr std::uint64_t without_yields_ns = 200'000'000;

std::uint64_t now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(t.tv_nsec);
}

}  // namespace

namespace detail {

bool register_membarrier() {
  return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
}

}  // namespace detail

wait_policy wait_policy::choose(int ranks, int cores) {
  if (ranks <= cores) return {.spins = 20'000, .yields = 100, .park = true};
  return {.spins = 0, .yields = 64, .park = true};
}

wait_policy wait_policy::parse(const std::string& name, int ranks, int cores) {
  if (name == "auto") return choose(ranks, cores);
  if (name == "spin") return {.spins = UINT32_MAX, .yields = 0, .park = false};
  if (name == "yield") return {.spins = 0, .yields = UINT32_MAX, .park = false};
  if (name == "park") return {.spins = 0, .yields = 0, .park = true};
  throw std::invalid_argument("'" + name + "' (accepted: auto, spin, yield, park)");
}

void port::waiter::step() {
  if (armed_) sleep();
  const wait_policy& policy = port_.waiting_;
  const std::uint64_t step = steps_;
  if (steps_ != UINT32_MAX) ++steps_;
  // Rare enough to look whether there is still somebody to wait for; a policy may spin for ever.
  constexpr std::uint32_t spins_between_checks = 1024;
  const bool spinning = step < policy.spins;
  if (spinning && step % spins_between_checks != spins_between_checks - 1) return relax();
  if (port_.segment_.shared->aborted.load(std::memory_order_relaxed) != 0) throw run_aborted();
  if (spinning) return relax();
  if (step < std::uint64_t{policy.spins} + policy.yields || !policy.park) {
    if (policy.spins == UINT32_MAX) return relax();
    if (!policy.park) {
      sched_yield();
      return;
    }
    if (port_.yield_if_it_is_short()) return;
  }
  arm();
}

// Ranks that wait give way again at once. Another program does not: every yield to it costs a time
// slice, a hundred times what it takes to sleep and be woken. After one such yield we do without
// for a while.
bool port::yield_if_it_is_short() {
  const std::uint64_t before = now_ns();
  if (before < no_yield_before_ns_) return false;
  sched_yield();
  const std::uint64_t after = now_ns();
  if (after - before > long_yield_ns) no_yield_before_ns_ = after + without_yields_ns;
  return true;
}

// From here on a writer that writes after our next look finds `parked` set and rings.
void port::waiter::arm() {
  detail::bell& b = port_.segment_.bells[home_];
  ticket_ = b.rung.load(std::memory_order_seq_cst);
  b.parked.fetch_add(1, std::memory_order_seq_cst);
  // A writer whose store and look at `parked` have no fence between them must not have looked
  // before our fetch_add with its store still unseen: the barrier runs on every processor instead.
  if (!port_.fenced_stores_) syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
  armed_ = true;
}

void port::waiter::disarm() {
  port_.segment_.bells[home_].parked.fetch_sub(1, std::memory_order_seq_cst);
  armed_ = false;
}

// The look after arm() failed as well: sleep until the bell rings, unless it has since.
void port::waiter::sleep() {
  syscall(SYS_futex, &port_.segment_.bells[home_].rung, FUTEX_WAIT, ticket_, &abort_check, nullptr,
          0);
  disarm();
}

void port::wake(detail::bell& b) {
  b.rung.fetch_add(1, std::memory_order_seq_cst);
  syscall(SYS_futex, &b.rung, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void port::pause(std::uint64_t nanoseconds) {
  constexpr std::uint64_t worth_sleeping = 100'000;
  constexpr std::uint32_t looks_between_yields = 64;
  const bool crowded = waiting_.spins == 0;
  if ((++pauses_ % looks_between_yields == 0 || nanoseconds >= worth_sleeping) &&
      segment_.shared->aborted.load(std::memory_order_relaxed) != 0)
    throw run_aborted();
  if (nanoseconds >= worth_sleeping) {
    const timespec t{static_cast<time_t>(nanoseconds / 1'000'000'000),
                     static_cast<long>(nanoseconds % 1'000'000'000)};
    nanosleep(&t, nullptr);
    return;
  }
  if (crowded || (nanoseconds == 0 && pauses_ % looks_between_yields == 0)) sched_yield();
  if (nanoseconds == 0) return relax();
  for (const std::uint64_t until = now_ns() + nanoseconds; now_ns() < until;)
    crowded ? static_cast<void>(sched_yield()) : relax();
}

// ---- messages ----
// A slot is free for the n-th message when its turn is 2 × lap, and full when it is 2 × lap + 1.

void port::send(rma::rank_t to, std::array<rma::word, 3> body) {
  detail::mailbox_ends& ends = segment_.mailboxes[to];
  const std::uint64_t n = ends.tail.fetch_add(1, std::memory_order_seq_cst);
  detail::message_slot& slot =
      segment_
          .slots[static_cast<std::uint64_t>(to) * segment_.slots_each + n % segment_.slots_each];
  const std::uint64_t lap = n / segment_.slots_each;
  while (slot.turn.load(std::memory_order_acquire) != 2 * lap)
    pause(0);  // full: the receiver is slow
  slot.content = {rank_, body};
  slot.turn.store(2 * lap + 1, std::memory_order_release);
  fence();  // before the look at `parked`
  ring(to);
}

bool port::try_receive(rma::message& got) {
  detail::mailbox_ends& ends = segment_.mailboxes[rank_];
  const std::uint64_t n = ends.head;
  detail::message_slot& slot =
      segment_
          .slots[static_cast<std::uint64_t>(rank_) * segment_.slots_each + n % segment_.slots_each];
  const std::uint64_t lap = n / segment_.slots_each;
  if (slot.turn.load(std::memory_order_acquire) != 2 * lap + 1) return false;
  got = slot.content;
  slot.turn.store(2 * (lap + 1), std::memory_order_release);
  ++ends.head;
  return true;
}

rma::message port::receive() {
  rma::message got;
  for (waiter w(*this, rank_); !try_receive(got);) w.step();
  return got;
}

}  // namespace lockflight::shm
