// The waits of ranks: spin, then yield, then park.
#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include "fabric/shm/pause.hpp"
#include "lockflight/rma/assert.hpp"
#include "segment.hpp"
#include "waiting.hpp"

namespace lockflight::shm {

namespace {

// A sleeper checks this often whether the run was aborted; nothing else depends on it.
constexpr std::uint64_t abort_check_ns = 100'000'000;

}  // namespace

namespace detail {

std::string refused(const char* call, int error) {
  return std::string("failed: ") + call + ": " + std::generic_category().message(error);
}

bool register_membarrier() {
  return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
}

// The quick command needs memory of the kernel. The other one waits for all processors instead,
// some milliseconds.
bool membarrier() {
  return syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) == 0 ||
         syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) == 0;
}

void begin_with_fenced_stores(const segment_view& in, int ranks) {
  for (int rank = 0; rank < ranks; ++rank) in.bells[rank].fence_stores();
  in.shared->stores_are_fenced.store(1, std::memory_order_release);
}

// A rank that has read `parked` without the bit has stored before, and the barrier makes that store
// visible. So it is visible to a rank that arms after the flag is set, and makes no barrier.
void fence_stores(const segment_view& in, int ranks) {
  for (int rank = 0; rank < ranks; ++rank) in.bells[rank].fence_stores();
  if (membarrier()) in.shared->stores_are_fenced.store(1, std::memory_order_release);
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
  // How often a spinning rank checks whether the run was aborted: a policy may spin for ever.
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
  // Messages ring our own bells: a rank that serves messages does not sleep at another rank's.
  if (port_.handler_ != nullptr && on_.home != port_.rank_) {
    sched_yield();
    return;
  }
  sleeper_.arm(port_.bell_of(on_));
  // A writer whose store and read of `parked` have no fence between them must not have read
  // `parked` before our mark while its store is still unseen.
  if (port_.order_stores_of_others()) return;
  sleeper_.disarm();
  sched_yield();
}

bool port::stores_are_fenced() const {
  return segment_.shared->stores_are_fenced.load(std::memory_order_acquire) != 0;
}

// The barrier runs on every processor instead of the writers' fences. It takes up to some
// microseconds, and a fence some nanoseconds in each store: the barrier is for ranks that sleep now
// and then, the fences for ranks that do so all the time.
bool port::order_stores_of_others() {
  if (stores_are_fenced()) return true;
  if (!detail::membarrier()) return false;
  if (crowded_ && sleeps_often()) detail::fence_stores(segment_, machine_.ranks());
  return true;
}

// True for more than one sleep in a millisecond, so that at most a hundredth of the time goes into
// barriers.
bool port::sleeps_often() {
  constexpr std::uint32_t counted = 32;
  constexpr std::uint64_t within_ns = counted * 1'000'000ull;
  if (barriers_++ % counted != 0) return false;
  const std::uint64_t before = std::exchange(barriers_since_, now_ns());
  return barriers_since_ - before < within_ns;
}

// Ranks whose stores are fenced one by one need no other's help. The others have left
// their fences to us: without the barrier no lock is safe any more.
void port::fence_node() {
  fence();
  if (stores_are_fenced() || detail::membarrier()) return;
  // The report is made here already, as in hear_of_losses.
  segment_.shared->report(rank_, detail::refused("membarrier", errno));
  throw run_aborted();
}

rma::deadline port::deadline_in(std::uint64_t nanoseconds) {
  return {detail::ns_from_now(nanoseconds)};
}

bool port::is_over(rma::deadline until) { return now_ns() >= until.at; }

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
  for (const std::uint64_t until = now_ns() + nanoseconds; now_ns() < until;)
    crowded ? static_cast<void>(sched_yield()) : detail::relax();
}

// ---- messages ----
// A slot is free for the n-th message when its turn is 2 × lap, and full when it is 2 × lap + 1. A
// sender that is killed between taking it and filling it leaves it taken (is_abandoned).

void port::send(rma::rank_t to, std::array<rma::word, 3> body) {
  rma::ensure(to >= 0 && to < machine_.ranks(), "a message goes to a rank of the run");
  std::atomic<std::uint32_t>& fills_at = segment_.mailboxes[rank_].fills_at;
  // Relaxed: the increment that takes the slot makes this store visible.
  fills_at.store(static_cast<std::uint32_t>(to) + 1, std::memory_order_relaxed);
  const std::uint64_t n = segment_.mailboxes[to].tail.fetch_add(1, std::memory_order_seq_cst);
  detail::message_slot& taken = slot(to, n);
  const std::uint64_t lap = n / segment_.slots_each;
  while (taken.turn.load(std::memory_order_acquire) != 2 * lap)
    pause(0);  // full: the receiver is slow
  taken.content = {rank_, body};
  taken.turn.store(2 * lap + 1, std::memory_order_release);
  // Release: a rank that sees that we fill no slot any more sees that this one is full.
  fills_at.store(0, std::memory_order_release);
  fence();                        // before the read of `parked`
  segment_.bells[to].ring_all();  // at any of which its receiver may sleep
}

bool port::try_receive(rma::message& got) {
  std::uint64_t& head = segment_.mailboxes[rank_].head;
  bool is_there = false;
  while (!is_there) {
    detail::message_slot& next = slot(rank_, head);
    const std::uint64_t lap = head / segment_.slots_each;
    is_there = next.turn.load(std::memory_order_acquire) == 2 * lap + 1;
    if (is_there)
      got = next.content;
    else if (!is_abandoned(head))
      return false;
    next.turn.store(2 * (lap + 1), std::memory_order_release);
    ++head;
  }
  return true;
}

void port::serve_all() {
  for (rma::message got; try_receive(got);) handler_->handle(got);
  hear_of_losses();
}

rma::message port::receive() {
  rma::message got;
  for (waiter w(*this, rma::plain_cell{rank_, 0}); !try_receive(got); w.step())
    if (handler_ != nullptr) hear_of_losses();
  return got;
}

// ---- losses ----

bool port::may_lose() const { return segment_.shared->may_lose; }

// The sender of the n-th message is unknown before the message is there. But a sender announces in
// whose mailbox it fills a slot before it takes one: if no living rank announces ours, only a lost
// rank can have taken the slot. A rank that sends again and again could hide that; but it waits for
// us before its third message (C28).
bool port::is_abandoned(std::uint64_t n) const {
  const detail::control& shared = *segment_.shared;
  // Acquire, here and below: with the loss we see all writes of the lost rank.
  const std::uint32_t losses = shared.losses.load(std::memory_order_acquire);
  if (losses == 0) [[likely]]
    return false;
  // Acquire: we see what the rank that made it larger than n had announced before.
  if (segment_.mailboxes[rank_].tail.load(std::memory_order_acquire) <= n) return false;
  const std::uint32_t ours = static_cast<std::uint32_t>(rank_) + 1;
  for (rma::rank_t r = 0; r < machine_.ranks(); ++r)
    // Acquire: a rank that no longer announces it has filled its slot, as we see below.
    if (segment_.mailboxes[r].fills_at.load(std::memory_order_acquire) == ours &&
        !shared.is_lost(r, losses))
      return false;
  return slot(rank_, n).turn.load(std::memory_order_acquire) == 2 * (n / segment_.slots_each);
}

// The handler is called when all earlier messages have been served, the lost rank's among them.
void port::hear_of_losses() {
  detail::control& shared = *segment_.shared;
  const std::uint32_t losses = shared.losses.load(std::memory_order_acquire);
  if (losses == losses_heard_) [[likely]]
    return;
  const detail::mailbox_ends& ends = segment_.mailboxes[rank_];
  if (losses != losses_seen_) {
    losses_seen_ = losses;
    // Relaxed: what the lost rank added to it came before the loss, which we have acquired.
    messages_then_ = ends.tail.load(std::memory_order_relaxed);
  }
  if (ends.head < messages_then_) return;
  try {
    while (losses_heard_ < losses_seen_) handler_->lost(shared.lost[losses_heard_++]);
  } catch (const rma::rank_needed& e) {
    // The error is reported here: we may be in an unlock inside a destructor, which no exception
    // may leave.
    shared.report(e.rank, e.what());
    throw run_aborted();
  }
}

bool port::is_lost(rma::rank_t rank) {
  const detail::control& shared = *segment_.shared;
  // Without a handler there is no call to wait for.
  if (handler_ == nullptr) losses_heard_ = shared.losses.load(std::memory_order_acquire);
  return shared.is_lost(rank, losses_heard_);
}

// A slot that its receiver has emptied is not full any more, and a lost rank empties no other.
bool port::never_received(rma::rank_t rank, const std::array<rma::word, 3>& body) const {
  const detail::mailbox_ends& ends = segment_.mailboxes[rank];
  const std::uint64_t tail = ends.tail.load(std::memory_order_relaxed);  // ours are in it
  for (std::uint64_t n = ends.head; n < tail; ++n) {
    const detail::message_slot& s = slot(rank, n);
    // Acquire: the content of a full slot is there.
    if (s.turn.load(std::memory_order_acquire) == 2 * (n / segment_.slots_each) + 1 &&
        s.content == rma::message{rank_, body})
      return true;
  }
  return false;
}

}  // namespace lockflight::shm
