// The benchmark on shared memory: which clock it has, where results lie, how ranks start. Another
// fabric gets a header like this one, and a line in entry.hpp.
#pragma once

#include <functional>

#include "bench/clock.hpp"
#include "bench/measure.hpp"
#include "bench/parameters.hpp"
#include "lockflight/fabric/shm.hpp"

namespace lockflight::bench {

/// Runs one lock once. `watch` is called a few times a second; what it throws ends the run.
template <template <class> class Lock>
void run_on_shm(const run_plan& plan, const run_results& results,
                const std::function<void()>& watch) {
  using counted = fabric::counting<shm::port>;
  using traced = fabric::tracing<counted>;
  constexpr std::uint32_t words = 1u << 17;
  const shm::config what{.machine = plan.machine,
                         .threads = plan.threads,
                         .pin = plan.pin,
                         .waiting = plan.waiting,
                         .words_per_rank = plan.what == workload::dht ? dht_words : words};
  const tick_clock clock = tick_clock::calibrated();
  const auto act = [&]<class Port>(Port& port) {
    const auto set = parameters_from<typename Lock<Port>::parameters>(plan.set);
    rma::participant<Port> me(port, what.words_per_rank);
    rank_run<Lock<Port>, Port, tick_clock>(me, plan, set, clock, results).run();
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
