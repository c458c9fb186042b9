// Workload stencil: a grid that the ranks share in strips, one after the other. In each iteration a
// rank reads, computes and writes the lines of its strip, tells both neighbours so, and waits until
// both have told it the same. No lock.
//
// Source: "MPI passive target synchronization on a non-cache-coherent many-core" (SCC paper),
// section 5.4 and figure 5: the flags by which ranks tell each other lie at the rank that waits for
// them, or all at one rank.
#pragma once

#include <array>
#include <cstdint>
#include <limits>

#include "lab/bench/workload/phases.hpp"
#include "lab/bench/workload/plan.hpp"
#include "lab/bench/workload/results.hpp"
#include "lockflight/rma/barrier.hpp"

namespace lockflight::bench {

/// The lines of the whole grid, however many ranks share it.
constexpr std::uint32_t stencil_lines = 9'600;
/// The time that a core computes for each line: four points of a five-point stencil in some 25
/// cycles each, at the 533 MHz of the SCC.
constexpr double stencil_seconds_a_line = 0.19e-6;

template <rma::port Port, class Clock>
class stencil_run {
 public:
  stencil_run(rma::participant<Port>& me, const run_plan& plan, const Clock& clock,
              const run_results& results)
      : port_(me.port()),
        plan_(plan),
        clock_(clock),
        mine_(results.of(me.rank())),
        barrier_(me),
        phases_(port_, plan, clock, results),
        ranks_(static_cast<std::uint32_t>(plan.machine.ranks())),
        flags_(me.cells().template take<rma::plain_cell>(ranks_ * sides)),
        lines_(me.cells().template take<rma::plain_cell>(stencil_lines).at(me.rank())) {}

  void run() {
    phases_.start(barrier_, roles(plan_));
    loop();
    phases_.done();
    barrier_.arrive_and_wait();
  }

 private:
  static constexpr std::uint32_t sides = 2;  // the neighbour before and the one behind
  static constexpr rma::word no_more = std::numeric_limits<rma::word>::max();

  void loop() {
    std::uint64_t last = clock_.now();
    rma::word iteration = 0;
    for (bool more = phases_.begin(last); more; more = phases_.next(last)) {
      const std::uint64_t begun = last;
      work();
      tell(++iteration);
      await_both(iteration);
      last = clock_.now();
      mine_.record(true, last - begun, last - begun);
    }
    phases_.end(last);
    tell(no_more);  // by time, the neighbours may have more iterations
  }

  void work() {
    const std::uint64_t a_line = clock_.ticks(stencil_seconds_a_line);
    const auto me = static_cast<std::uint32_t>(port_.rank());
    for (std::uint32_t i = me; i < stencil_lines; i += ranks_) {
      const rma::word line = port_.load(lines_ + i);
      clock_.busy_until(clock_.now() + a_line);
      port_.store(lines_ + i, line + 1);
    }
  }

  void tell(rma::word iteration) {
    const rma::rank_t me = port_.rank();
    if (me > 0) rma::put_now(port_, flag(me - 1, 1), iteration);
    if (me + 1 < plan_.machine.ranks()) rma::put_now(port_, flag(me + 1, 0), iteration);
  }

  void await_both(rma::word iteration) {
    const auto done = [iteration](rma::word now) { return now >= iteration; };
    const rma::rank_t me = port_.rank();
    if (me > 0) port_.poll(flag(me, 0), done, rma::backoff::none());
    if (me + 1 < plan_.machine.ranks()) port_.poll(flag(me, 1), done, rma::backoff::none());
  }

  /// The flag that a rank waits for, of the neighbour on one of its sides.
  [[nodiscard]] rma::plain_cell flag(rma::rank_t waits, std::uint32_t side) const {
    return flags_.at(plan_.flags_at.value_or(waits)) +
           (static_cast<std::uint32_t>(waits) * sides + side);
  }

  Port& port_;
  const run_plan& plan_;
  Clock clock_;
  rank_result& mine_;
  rma::barrier<Port> barrier_;
  phases<Port, Clock> phases_;
  std::uint32_t ranks_;
  rma::plain_cell flags_;  // [rank][side], at each rank, of which one's are in use
  rma::plain_cell lines_;
};

}  // namespace lockflight::bench
