#include "lab/bench/port/any_clock.hpp"
#include "lab/bench/port/any_port.hpp"
#include "lab/bench/shm/stage.hpp"

namespace lockflight::bench {

void trace_on_shm(const anywhere& lock, const run_plan& plan, const run_results& results,
                  const std::function<void()>& watch) {
  const shm::config what = config_of(plan, lock.words(plan));
  const tick_clock clock = tick_clock::calibrated();
  shm::run_ports(
      what,
      [&](shm::port& bare) {
        fabric::counting<shm::port> counted(bare);
        fabric::tracing traced(counted, results.trace_of(bare.rank()));
        any_port_on on(traced);
        lock.run_rank(on, what.words_per_rank, plan, any_clock::on(clock), results);
      },
      watch);
}

}  // namespace lockflight::bench
