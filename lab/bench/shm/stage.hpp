// The benchmark on shared memory: its clock, its results, the start of its ranks.
#pragma once

#include <functional>
#include <vector>

#include "lab/bench/port/clock.hpp"
#include "lab/bench/workload/anywhere.hpp"
#include "lab/bench/workload/run_rank.hpp"
#include "lockflight/fabric/shm.hpp"

namespace lockflight::bench {

[[nodiscard]] inline shm::config config_of(const run_plan& plan, std::uint32_t words) {
  return {.machine = plan.machine,
          .threads = plan.threads,
          .pin = plan.pin,
          .waiting = plan.waiting,
          .words_per_rank = words};
}

/// True if a rank is no lock's home.
[[nodiscard]] inline bool serves_nobody(rma::rank_t rank, const run_plan& plan) {
  for (std::uint32_t i = 0; i < plan.locks; ++i)
    if (home_in(plan, i) == rank) return false;
  return true;
}

/// Runs one lock once. `watch` is called a few times a second; what it throws ends the run.
template <template <class> class Lock>
void run_on_shm(const run_plan& plan, const run_results& results,
                const std::function<void()>& watch) {
  using counted = fabric::counting<shm::port>;
  shm::config what = config_of(plan, words_for<Lock<shm::port>>(plan));
  // In rounds all ranks are measured together.
  if (Lock<shm::port>::about.bears_lost_waiters && !goes_in_rounds(plan.what))
    what.bears_loss_of = [&plan](rma::rank_t rank) { return serves_nobody(rank, plan); };
  const tick_clock clock = tick_clock::calibrated();
  const std::vector<rma::rank_t> lost = shm::run_ports(
      what,
      [&](shm::port& bare) {
        counted port(bare);
        rma::participant<counted> me(port, what.words_per_rank);
        run_rank<Lock>(me, plan, clock, results);
      },
      watch);
  for (const rma::rank_t rank : lost) results.of(rank).lost = true;
}

/// The same with any lock, traced.
void trace_on_shm(const anywhere& lock, const run_plan& plan, const run_results& results,
                  const std::function<void()>& watch);

/// Runs a few acquires of each rank on a port that refuses what the contract forbids between nodes,
/// and shared memory carries out all the same: an immediate operation on another node's cell.
/// Throws what the port throws (fabric/strict.hpp), so that no lock is measured that works on one
/// machine alone.
void rehearse_on_shm(const anywhere& lock, const run_plan& plan);

}  // namespace lockflight::bench
