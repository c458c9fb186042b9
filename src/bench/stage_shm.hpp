// The benchmark on shared memory: which clock it has, where results lie, how ranks start. Another
// fabric gets a header like this one, and a line in entry.hpp.
#pragma once

#include <functional>

#include "bench/clock.hpp"
#include "bench/run_rank.hpp"
#include "lockflight/fabric/shm.hpp"

namespace lockflight::bench {

/// Runs one lock once. `watch` is called a few times a second; what it throws ends the run.
template <template <class> class Lock>
void run_on_shm(const run_plan& plan, const run_results& results,
                const std::function<void()>& watch) {
  using counted = fabric::counting<shm::port>;
  using traced = fabric::tracing<counted>;
  const shm::config what{.machine = plan.machine,
                         .threads = plan.threads,
                         .pin = plan.pin,
                         .waiting = plan.waiting,
                         .words_per_rank = words_for<Lock<shm::port>>(plan)};
  const tick_clock clock = tick_clock::calibrated();
  const auto act = [&]<class Port>(Port& port) {
    rma::participant<Port> me(port, what.words_per_rank);
    run_rank<Lock>(me, plan, clock, results);
  };
  shm::run_ports(
      what,
      [&](shm::port& bare) {
        counted counting(bare);
        if (!plan.trace) return act(counting);
        traced tracing(counting, fabric::trace_buffer(results.trace_room(bare.rank()),
                                                      results.of(bare.rank()).trace_used));
        act(tracing);
      },
      watch);
}

}  // namespace lockflight::bench
