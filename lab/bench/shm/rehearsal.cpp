#include "lab/bench/port/any_clock.hpp"
#include "lab/bench/port/any_port.hpp"
#include "lab/bench/shm/stage.hpp"
#include "lockflight/fabric/strict.hpp"

namespace lockflight::bench {

void rehearse_on_shm(const anywhere& lock, const run_plan& whole) {
  constexpr std::uint64_t acquires_of_each = 16;
  run_plan plan = whole;
  plan.ops = acquires_of_each * static_cast<std::uint64_t>(plan.machine.ranks());
  plan.warm_up = false;
  plan.trace = false;
  const run_results results(plan);
  const shm::config what = config_of(plan, lock.words(plan));
  const tick_clock clock = tick_clock::calibrated();
  shm::run_ports(what, [&](shm::port& bare) {
    fabric::strict<shm::port> strict(bare);
    fabric::counting<fabric::strict<shm::port>> counted(strict);
    any_port_on on(counted);
    lock.run_rank(on, what.words_per_rank, plan, any_clock::on(clock), results);
  });
}

}  // namespace lockflight::bench
