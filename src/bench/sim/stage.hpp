// The benchmark on simulated machines. Ranks are fibers, and the time is virtual: a run is the same
// each time.
#pragma once

#include "bench/run_rank.hpp"
#include "bench/sim/clock.hpp"
#include "bench/sim/entries.hpp"
#include "sim/run.hpp"

namespace lockflight::bench {

template <template <class> class Lock>
void run_on_sim(const run_plan& plan, const run_results& results,
                const std::function<void()>& watch) {
  const sim::setting what{.profile = *plan.profile,
                          .machine = plan.machine,
                          .words_per_rank = words_for<Lock<sim::port>>(plan),
                          .seed = plan.seed,
                          .most_events = plan.most_events,
                          .places = plan.nodes};
  sim::run_ports(
      what,
      [&](sim::port& port) {
        fabric::trace_buffer events(results.trace_room(port.rank()),
                                    results.of(port.rank()).trace_used);
        if (plan.trace) port.trace_into(&events);
        rma::participant<sim::port> me(port, what.words_per_rank);
        run_rank<Lock>(me, plan, sim_clock(port), results);
      },
      [&] {
        // Virtual time goes on, or the engine would have said who waits for what.
        results.of(0).beats.fetch_add(1, std::memory_order_relaxed);
        watch();
      });
}

}  // namespace lockflight::bench
