// How ranks wait: spin, then yield, then park.
#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>
#include <stdexcept>

#include "fabric/shm/pause.hpp"
#include "segment.hpp"
#include "waiting.hpp"

namespace lockflight::shm {

namespace {

// A sleeper looks up this often whether the run was aborted; nothing else depends on it.
constexpr std::uint64_t abort_check_ns = 100'000'000;

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
  if (sleeper_.armed()) sleeper_.sleep(detail::until_or(until_.at, abort_check_ns));
  const wait_policy& policy = port_.waiting_;
  const std::uint64_t step = steps_;
  if (steps_ != UINT32_MAX) ++steps_;
  // Rare enough to look whether there is still somebody to wait for; a policy may spin for ever.
  constexpr std::uint32_t spins_between_checks = 1024;
  const bool spinning = step < policy.spins;
  if (spinning && step % spins_between_checks != spins_between_checks - 1) return detail::relax();
  if (port_.segment_.shared->aborted.load(std::memory_order_relaxed) != 0) throw run_aborted();
  if (spinning) return detail::relax();
  if (step < std::uint64_t{policy.spins} + policy.yields || !policy.park) {
    if (policy.spins == UINT32_MAX) return detail::relax();
    if (!policy.park) {
      sched_yield();
      return;
    }
    if (port_.yields_.yield()) return;
  }
  // Messages ring our own bell: whoever serves them does not sleep at another's.
  if (port_.handler_ != nullptr && home_ != port_.rank_) {
    sched_yield();
    return;
  }
  sleeper_.arm(port_.segment_.bells[home_]);
  // A writer whose store and look at `parked` have no fence between them must not have looked
  // before our mark with its store still unseen: the barrier runs on every processor instead.
  if (!port_.fenced_stores_) syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
}

rma::deadline port::deadline_in(std::uint64_t nanoseconds) {
  return {detail::ns_from_now(nanoseconds)};
}

bool port::is_over(rma::deadline until) { return detail::now_ns() >= until.at; }

void port::pause(std::uint64_t nanoseconds) {
  constexpr std::uint64_t worth_sleeping = 100'000;
  constexpr std::uint32_t looks_between_yields = 64;
  const bool crowded = waiting_.spins == 0;
  serve();
  if ((++pauses_ % looks_between_yields == 0 || nanoseconds >= worth_sleeping) &&
      segment_.shared->aborted.load(std::memory_order_relaxed) != 0)
    throw run_aborted();
  if (nanoseconds >= worth_sleeping) return detail::sleep_for_ns(nanoseconds);
  if (crowded || (nanoseconds == 0 && pauses_ % looks_between_yields == 0)) sched_yield();
  if (nanoseconds == 0) return detail::relax();
  for (const std::uint64_t until = detail::now_ns() + nanoseconds; detail::now_ns() < until;)
    crowded ? static_cast<void>(sched_yield()) : detail::relax();
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

void port::serve_all() {
  for (rma::message got; try_receive(got);) handler_->handle(got);
}

rma::message port::receive() {
  rma::message got;
  for (waiter w(*this, rank_); !try_receive(got);) w.step();
  return got;
}

}  // namespace lockflight::shm
