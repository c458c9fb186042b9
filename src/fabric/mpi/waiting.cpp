// The port but for its quick paths: waiting, messages, and what goes through MPI.
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

#include "fabric/mpi/link.hpp"

namespace lockflight::mpi {

namespace {

void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#endif
}

// Whoever sleeps looks up as often, to serve others.
constexpr timespec longest_sleep{0, 2'000'000};

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

void port::waiter::step() {
  if (armed_) sleep();
  const wait_policy& policy = port_.waiting_;
  const std::uint64_t step = steps_;
  if (steps_ != UINT32_MAX) ++steps_;
  if (step % port_.looks_between_progress_ == port_.looks_between_progress_ - 1) {
    port_.link_.progress();
    if (port_.hook_ != nullptr) (*port_.hook_)();
  }
  if (step < policy.spins) return relax();
  if (!port_.rings_) {
    sched_yield();
    return;
  }
  if (step < std::uint64_t{policy.spins} + policy.yields && port_.yield_if_it_is_short()) return;
  arm();
}

// As on shared memory: a yield to a program that computes costs its time slice, a hundred times
// what it takes to sleep and be woken. After one such yield we do without for a while.
bool port::yield_if_it_is_short() {
  const std::uint64_t before = now_ns();
  if (before < no_yield_before_ns_) return false;
  sched_yield();
  const std::uint64_t after = now_ns();
  if (after - before > long_yield_ns) no_yield_before_ns_ = after + without_yields_ns;
  return true;
}

// From here on a writer that writes after our next look finds `parked` set and rings: it has a
// fence between its write and its look (write, after_rmw), we have one between our mark and our
// look.
void port::waiter::arm() {
  detail::bell& b = port_.bell_of(home_);
  ticket_ = b.rung.load(std::memory_order_seq_cst);
  b.parked.fetch_add(1, std::memory_order_seq_cst);
  // Where an RMW is no fence for later acquire loads.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  armed_ = true;
}

void port::waiter::disarm() {
  port_.bell_of(home_).parked.fetch_sub(1, std::memory_order_seq_cst);
  armed_ = false;
}

// The look after arm() failed as well: sleep until the bell rings, unless it has since.
void port::waiter::sleep() {
  syscall(SYS_futex, &port_.bell_of(home_).rung, FUTEX_WAIT, ticket_, &longest_sleep, nullptr, 0);
  disarm();
  port_.link_.progress();
  if (port_.hook_ != nullptr) (*port_.hook_)();
}

void port::wake(detail::bell& b) {
  b.rung.fetch_add(1, std::memory_order_seq_cst);
  syscall(SYS_futex, &b.rung, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void port::pause(std::uint64_t nanoseconds) {
  constexpr std::uint64_t worth_sleeping = 100'000;
  constexpr std::uint32_t looks_between_yields = 64;
  const bool crowded = waiting_.spins == 0;
  const bool every_so_often = ++pauses_ % looks_between_yields == 0;
  const bool serving = looks_between_progress_ < looks_between_yields;
  if (serving || every_so_often || nanoseconds >= worth_sleeping) {
    link_.progress();
    if (hook_ != nullptr) (*hook_)();
  }
  if (!serving && nanoseconds >= worth_sleeping) {
    const timespec t{static_cast<time_t>(nanoseconds / 1'000'000'000),
                     static_cast<long>(nanoseconds % 1'000'000'000)};
    nanosleep(&t, nullptr);
    return;
  }
  // Between nodes whoever looks again at once makes work for the target, which with more ranks than
  // cores has not come to the last look yet: Open MPI handles each inside the handling of the one
  // before, and the looks of those who wait keep out the write that they wait for.
  if (crowded && !only_cpu_) {
    constexpr timespec short_sleep{0, 20'000};
    nanosleep(&short_sleep, nullptr);
  } else if (crowded || (nanoseconds == 0 && every_so_often)) {
    sched_yield();
  }
  if (nanoseconds == 0) return relax();
  for (const std::uint64_t until = now_ns() + nanoseconds; now_ns() < until;) {
    if (serving) link_.progress();
    crowded ? static_cast<void>(sched_yield()) : relax();
  }
}

// ---- messages ----

// What was stored must be there when the message is (C29); the library's own queue is written with
// plain stores perhaps.
void port::send(rma::rank_t to, std::array<rma::word, 3> body) {
  order_after_writes();
  link_.send(to, {rank_, body});
}

bool port::try_receive(rma::message& got) {
  if (!link_.try_receive(got)) return false;
  std::atomic_thread_fence(std::memory_order_seq_cst);  // our loads come after the message
  return true;
}

rma::message port::receive() {
  rma::message got;
  for (std::uint64_t looks = 0; !try_receive(got); ++looks)
    looks < waiting_.spins ? relax() : static_cast<void>(sched_yield());
  return got;
}

// ---- through MPI ----

void port::post(detail::remote_kind kind, rma::rank_t home, std::uint32_t index, rma::word value,
                rma::word* result) {
  order_after_writes();  // C12
  link_.post(kind, home, index, value, result);
  pending_ = true;
}

void port::post_compare_swap(rma::nic_cell at_cell, rma::word expected, rma::word desired,
                             rma::word& before) {
  order_after_writes();  // C12
  link_.post_compare_swap(at_cell.home, at_cell.index, expected, desired, &before);
  pending_ = true;
}

void port::complete(rma::rank_t rank) {
  link_.complete(rank);
  pending_ = link_.pending();
}

void port::complete_all() {
  link_.complete_all();
  pending_ = false;
}

}  // namespace lockflight::mpi
