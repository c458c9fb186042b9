#include "domain/port.hpp"

#include <sched.h>

#include <cerrno>
#include <system_error>
#include <thread>

#include "fabric/shm/pause.hpp"
#include "fabric/shm/waiting.hpp"

namespace lockflight::detail {
namespace {

constexpr std::uint64_t between_looks_ns = 10'000'000;
constexpr std::uint32_t yields = 50;

int cores() {
  static const int count = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  return count;
}

}  // namespace

domain_port::domain_port(domain_file& file, int slot)
    : port(slot, file.machine(), file.view(), shm::wait_policy::choose(2, cores()),
           file.header().fenced != 0),
      file_(file),
      holds_since_(file.slot(slot).holds_since),
      fenced_(file.header().fenced != 0),
      cores_(cores()),
      living_(mark_the_dead(file, slot)) {}

void domain_port::fence_node() {
  fence();
  if (fenced_ || shm::detail::membarrier()) return;
  throw domain_error(domain_error::reason::system,
                     "domain " + file_.name() + ": " + shm::detail::refused("membarrier", errno));
}

void domain_port::pause(std::uint64_t nanoseconds) {
  constexpr std::uint64_t worth_sleeping = 100'000;
  if (!shares_cores() || nanoseconds >= worth_sleeping) return port::pause(nanoseconds);
  const std::uint64_t until = shm::detail::now_ns() + nanoseconds;
  do sched_yield();
  while (shm::detail::now_ns() < until);
}

void domain_port::look_if_due() {
  const std::uint64_t now = shm::detail::now_ns();
  if (now < next_look_) return;
  next_look_ = now + between_looks_ns;
  file_.check_size();
  living_ = mark_the_dead(file_, rank());
}

domain_port::waiter::~waiter() {
  // Relaxed, here and below: it is read only when we are dead.
  if (sleeper_.armed()) {
    port_.file_.slot(port_.rank()).sleeps_at.store(0, std::memory_order_relaxed);
    sleeper_.disarm();
  }
}

void domain_port::waiter::step() {
  auto& sleeps_at = port_.file_.slot(port_.rank()).sleeps_at;
  if (sleeper_.armed()) {
    sleeper_.sleep(shm::detail::until_or(until_.at, between_looks_ns));
    sleeps_at.store(0, std::memory_order_relaxed);
    port_.look_if_due();
    return;
  }
  constexpr std::uint32_t spins_between_looks = 256;
  const std::uint32_t step = steps_;
  // Relaxed: for show alone.
  if (step == 0)
    port_.file_.slot(port_.rank())
        .waits_since.store(shm::detail::now_ns(), std::memory_order_relaxed);
  if (steps_ != UINT32_MAX) ++steps_;
  if (step < spins_) {
    if (step % spins_between_looks == spins_between_looks - 1) port_.look_if_due();
    return shm::detail::relax();
  }
  if (step < spins_ + yields && port_.yields_.yield()) return port_.look_if_due();
  sleeper_.arm(port_.file_.view().bells[home_]);
  // After the bell counts us: if we die, the thread that frees our slot takes back no more than we
  // added. A death right between leaves the count too high, which costs wake-ups and nothing else.
  sleeps_at.store(static_cast<std::uint32_t>(home_) + 1, std::memory_order_relaxed);
  // As in the shm port: a writer without a fence is made to see our mark.
  if (port_.fenced_ || shm::detail::membarrier()) return;
  sleeps_at.store(0, std::memory_order_relaxed);
  sleeper_.disarm();
  sched_yield();
}

}  // namespace lockflight::detail
