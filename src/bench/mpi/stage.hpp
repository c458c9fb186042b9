// The benchmark on MPI. The ranks are this launch's; rank 0 of them tells about it.
#pragma once

#include "bench/clock.hpp"
#include "bench/measure.hpp"
#include "bench/mpi/launch.hpp"
#include "bench/parameters.hpp"
#include "lockflight/fabric/mpi.hpp"

namespace lockflight::bench {

/// Runs one lock once: collective, this process is a rank.
template <template <class> class Lock>
void run_on_mpi(const run_plan& plan, const run_results& results) {
  using counted = fabric::counting<mpi::port>;
  using traced = fabric::tracing<counted>;
  constexpr std::uint32_t words = 1u << 17;
  const mpi::config what{.machine = plan.machine,
                         .waiting = plan.waiting,
                         .words_per_rank = plan.what == workload::dht ? dht_words : words};
  const tick_clock clock = tick_clock::calibrated();
  const auto act = [&]<class Port>(Port& port) {
    const auto set = parameters_from<typename Lock<Port>::parameters>(plan.set);
    rma::participant<Port> me(port, what.words_per_rank);
    rank_run<Lock<Port>, Port, tick_clock>(me, plan, set, clock, results).run();
  };
  mpi::run_ports(what, [&](mpi::port& bare) {
    counted counting(bare);
    if (!plan.trace) return act(counting);
    traced tracing(counting, fabric::trace_buffer(results.trace_room(bare.rank()),
                                                  results.of(bare.rank()).trace_used));
    act(tracing);
  });
}

}  // namespace lockflight::bench
