// The slow paths of the port: waiting, messages, and operations through the network.
#include "lockflight/fabric/networked.hpp"

#include <sched.h>

#include <algorithm>
#include <ctime>

#include "fabric/shm/pause.hpp"

namespace lockflight::fabric {

namespace {

using shm::detail::relax;

// A sleeper wakes this often to serve other ranks, and where the program around the port is served
// too.
constexpr std::uint64_t longest_sleep_ns = 2'000'000;
constexpr std::uint64_t longest_sleep_that_serves_ns = 100'000;

// A port that makes progress after at most so many reads serves the program around it.
constexpr std::uint32_t reads_that_serve = 64;

}  // namespace

void network::post_lines(rma::rank_t home, std::uint32_t index, std::span<rma::word> results) {
  for (rma::word& result : results) {
    post(remote_kind::get, home, index, 0, &result);
    index += static_cast<std::uint32_t>(rma::line_words);
  }
}

void networked_port::make_progress() {
  link_.progress();
  if (hook_ != nullptr) (*hook_)();
}

void networked_port::serve_by_the_way() {
  if (only_cpu_ && reads_between_progress_ > reads_that_serve) return;
  // The two times are together at most 50 us, if these instructions come as often as they did. A
  // read of the clock takes three times as long as such an instruction, so there are many quick
  // ones for each read; if they become slow, the next read is late once.
  constexpr std::uint64_t between_steps_ns = 35'000;
  constexpr std::uint64_t between_looks_ns = 15'000;
  constexpr std::uint64_t most_rmws = 256;
  const std::uint64_t now = now_ns();
  if (now - served_at_ >= between_steps_ns) {
    link_.progress();
    served_at_ = now;
  }
  const std::uint64_t took = std::max<std::uint64_t>(now - looked_at_, 1);
  const std::uint64_t most = std::min<std::uint64_t>(2 * rmws_between_looks_, most_rmws);
  rmws_between_looks_ = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(rmws_between_looks_ * between_looks_ns / took, 1, most));
  rmws_until_look_ = rmws_between_looks_;
  looked_at_ = now;
}

void networked_port::waiter::step() {
  if (sleeper_.armed()) {
    const bool serves = port_.reads_between_progress_ <= reads_that_serve;
    sleeper_.sleep(
        shm::detail::until_or(until_.at, serves ? longest_sleep_that_serves_ns : longest_sleep_ns));
    port_.make_progress();
  }
  const shm::wait_policy& policy = port_.waiting_;
  const std::uint64_t step = steps_;
  if (steps_ != UINT32_MAX) ++steps_;
  if (step % port_.reads_between_progress_ == port_.reads_between_progress_ - 1)
    port_.make_progress();
  if (step < policy.spins) return relax();
  // A message rings no bell.
  if (!port_.rings_ || port_.handler_ != nullptr) {
    sched_yield();
    return;
  }
  if (step < std::uint64_t{policy.spins} + policy.yields && port_.yields_.yield()) return;
  sleeper_.arm(port_.bell_of(on_));
}

rma::deadline networked_port::deadline_in(std::uint64_t nanoseconds) {
  return {shm::detail::ns_from_now(nanoseconds)};
}

bool networked_port::is_over(rma::deadline until) { return now_ns() >= until.at; }

void networked_port::pause(std::uint64_t nanoseconds) {
  constexpr std::uint64_t worth_sleeping = 100'000;
  constexpr std::uint32_t looks_between_yields = 64;
  const bool crowded = shares_cores();
  serve();
  const bool every_so_often = ++pauses_ % looks_between_yields == 0;
  const bool serving = reads_between_progress_ <= reads_that_serve;
  if (serving || every_so_often || nanoseconds >= worth_sleeping) make_progress();
  if (!serving && nanoseconds >= worth_sleeping) return shm::detail::sleep_for_ns(nanoseconds);
  // Between nodes a poll that follows at once makes work for the target, which with more ranks than
  // cores has not handled the last poll yet. Open MPI handles each inside the handling of the one
  // before, so the waiters' polls delay the write that they wait for.
  if (crowded && !only_cpu_) {
    constexpr std::uint64_t short_sleep_ns = 20'000;
    shm::detail::sleep_for_ns(short_sleep_ns);
  } else if (crowded || (nanoseconds == 0 && every_so_often)) {
    // A sleep takes far longer than a yield, and the awaited value may come at once.
    if (every_so_often || !shm::detail::yields_reach_no_rank()) shm::detail::give_way();
  }
  if (nanoseconds == 0) return relax();
  for (const std::uint64_t until = now_ns() + nanoseconds; now_ns() < until;) {
    if (serving) link_.progress();
    crowded && !shm::detail::yields_reach_no_rank() ? static_cast<void>(sched_yield()) : relax();
  }
}

// ---- messages ----

// Earlier stores must be visible when the message is (C29); the library may write its own queue
// with plain stores.
void networked_port::send(rma::rank_t to, std::array<rma::word, 3> body) {
  order_after_writes();
  link_.send(to, {rank_, body});
}

bool networked_port::try_receive(rma::message& got) {
  if (!link_.try_receive(got)) return false;
  std::atomic_thread_fence(std::memory_order_seq_cst);  // our loads come after the message
  return true;
}

void networked_port::serve_all() {
  for (rma::message got; try_receive(got);) handler_->handle(got);
}

rma::message networked_port::receive() {
  rma::message got;
  for (std::uint64_t looks = 0; !try_receive(got); ++looks)
    looks < waiting_.spins ? relax() : static_cast<void>(sched_yield());
  return got;
}

// ---- through the network ----

void networked_port::post(remote_kind kind, rma::rank_t home, std::uint32_t index, rma::word value,
                          rma::word* result) {
  order_after_writes();  // C12
  link_.post(kind, home, index, value, result);
  pending_ = true;
}

void networked_port::post_lines(rma::rank_t home, std::uint32_t index,
                                std::span<rma::word> results) {
  order_after_writes();  // C12
  link_.post_lines(home, index, results);
  pending_ = true;
}

void networked_port::post_compare_swap(rma::nic_cell at_cell, rma::word expected, rma::word desired,
                                       rma::word& before) {
  order_after_writes();  // C12
  link_.post_compare_swap(at_cell.home, at_cell.index, expected, desired, &before);
  pending_ = true;
}

void networked_port::complete(rma::rank_t rank) {
  link_.complete(rank);
  pending_ = link_.pending();
}

void networked_port::complete_all() {
  link_.complete_all();
  pending_ = false;
}

}  // namespace lockflight::fabric
