#include "lab/bench/sim/stage.hpp"

#include "lab/bench/port/any_clock.hpp"
#include "lab/bench/port/any_port.hpp"
#include "lab/bench/sim/clock.hpp"
#include "lab/sim/run.hpp"

namespace lockflight::bench {

void run_on_sim(const anywhere& lock, const run_plan& plan, const run_results& results,
                const std::function<void()>& watch) {
  const sim::setting what{.profile = *plan.profile,
                          .machine = plan.machine,
                          .words_per_rank = lock.words(plan),
                          .seed = plan.seed,
                          .most_events = plan.most_events,
                          .places = plan.nodes};
  sim::run_ports(
      what,
      [&](sim::port& port) {
        fabric::trace_buffer events = results.trace_of(port.rank());
        if (plan.trace) port.trace_into(&events);
        const sim_clock clock(port);
        any_port_on on(port);
        lock.run_rank(on, what.words_per_rank, plan, any_clock::on(clock), results);
        rank_result& mine = results.of(port.rank());
        if (const sim::compare_swaps& swaps = port.swaps(); swaps.posted > 0) {
          mine.all_cas = swaps.posted;
          mine.failed_cas = swaps.failed;
        }
        if (plan.what == workload::contention && port.rank() == 0) {
          mine.on_messages = port.part_on_messages();
          mine.on_atomics = port.part_on_atomics();
        }
      },
      [&] {
        // Virtual time proceeds, or the engine would have reported the waits.
        results.of(0).beats.fetch_add(1, std::memory_order_relaxed);
        watch();
      });
}

rma::topology machine_on(const sim::machine_profile& profile, int procs) {
  const int cores = static_cast<int>(profile.cores);
  if (procs <= cores) return rma::topology::flat(procs);
  const auto ranks = static_cast<std::size_t>(procs);
  std::vector<std::vector<int>> element_of{std::vector<int>(ranks), std::vector<int>(ranks)};
  for (int r = 0; r < procs; ++r) element_of[1][static_cast<std::size_t>(r)] = r / cores;
  return {std::move(element_of), 2};
}

}  // namespace lockflight::bench
