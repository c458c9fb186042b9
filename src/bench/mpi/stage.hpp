// The benchmark on MPI. The ranks are this launch's; rank 0 of them tells about it.
#pragma once

#include "bench/clock.hpp"
#include "bench/mpi/launch.hpp"
#include "bench/run_rank.hpp"
#include "lockflight/fabric/mpi.hpp"

namespace lockflight::bench {

/// Runs one lock once: collective, this process is a rank.
template <template <class> class Lock>
void run_on_mpi(const run_plan& plan, const run_results& results) {
  using counted = fabric::counting<mpi::port>;
  using traced = fabric::tracing<counted>;
  const mpi::config what{.machine = plan.machine,
                         .waiting = plan.waiting,
                         .words_per_rank = words_for<Lock<mpi::port>>(plan)};
  const tick_clock clock = tick_clock::calibrated();
  const auto act = [&]<class Port>(Port& port) {
    rma::participant<Port> me(port, what.words_per_rank);
    run_rank<Lock>(me, plan, clock, results);
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
