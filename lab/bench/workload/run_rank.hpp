// A rank of a run, whatever the workload.
#pragma once

#include <cstdint>

#include "lab/bench/workload/measure.hpp"
#include "lab/bench/workload/measure_primitive.hpp"
#include "lab/bench/workload/measure_rounds.hpp"
#include "lab/bench/workload/measure_stencil.hpp"
#include "lab/bench/workload/measure_table.hpp"
#include "lockflight/lock/parameters.hpp"

namespace lockflight::bench {

template <template <class> class Lock, rma::port Port, class Clock>
void run_rank(rma::participant<Port>& me, const run_plan& plan, const Clock& clock,
              const run_results& results) {
  const auto set = lock::with_values(typename Lock<Port>::parameters{}, plan.set);
  // Only with the pseudo lock, so that it is compiled once.
  if constexpr (!excludes<Lock<Port>>) {
    if (plan.what == workload::primitive)
      return primitive_run<Port, Clock>(me, plan, clock, results).run();
    if (plan.what == workload::stencil)
      return stencil_run<Port, Clock>(me, plan, clock, results).run();
  }
  if (has_many_locks(plan.what))
    table_run<Lock, Port, Clock>(me, plan, set, clock, results).run();
  else if (goes_in_rounds(plan.what))
    rounds_run<Lock<Port>, Port, Clock>(me, plan, set, clock, results).run();
  else
    rank_run<Lock<Port>, Port, Clock>(me, plan, set, clock, results).run();
}

/// How many words of each rank's segment a run needs. Throws std::length_error if no segment can
/// have so many.
template <class Lock>
[[nodiscard]] std::uint32_t words_for(const run_plan& plan) {
  constexpr std::uint32_t usual = 1u
                                  << 17;  // one lock on any machine, and the workloads' own cells
  if (plan.what == workload::dht) return dht_words;
  if (!has_many_locks(plan.what)) return usual;  // the witness of one lock included
  rma::layout in(~std::uint32_t{0});
  auto set = lock::with_values(typename Lock::parameters{}, plan.set);
  if (plan.what == workload::table || plan.what == workload::zipf)
    set = lock::in_table(set, {plan.locks, plan.machine.ranks()});
  for (std::uint32_t i = 0; i < plan.locks; ++i)
    static_cast<void>(Lock::cells::place(in, plan.machine, set, home_in(plan, i)));
  const std::uint32_t witnesses = plan.far_witness ? far_witness<any_port>::words(plan.locks) : 0;
  const std::uint32_t data = plan.what == workload::zipf ? plan.locks : 0;
  return usual + witnesses + data + in.used();
}

}  // namespace lockflight::bench
