// The common part of all fabrics whose ranks an outside launcher starts: the gathering of the
// ranks' texts, the clock, and how a run's times of several hosts are brought together.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lab/bench/plan/launch.hpp"
#include "lab/bench/port/any_clock.hpp"
#include "lab/bench/port/any_port.hpp"
#include "lab/bench/port/clock.hpp"

namespace lockflight::bench {

/// The start of a run on a host's clocks: the one that operations are timed with, and
/// CLOCK_MONOTONIC, which traces have.
struct moment {
  std::uint64_t ticks = 0;
  std::uint64_t ns = 0;

  [[nodiscard]] moment operator-() const { return {-ticks, -ns}; }
};

class launched : public launch {
 public:
  [[nodiscard]] std::vector<word_from_rank> gather(const std::string& mine) override;
  [[nodiscard]] const tick_clock& clock() override;

 protected:
  // Collective.
  [[nodiscard]] virtual std::vector<std::string> texts(const std::string& mine) = 0;
  [[nodiscard]] virtual std::vector<int> first_of_host() = 0;
  [[nodiscard]] virtual double least(double mine) = 0;
  /// Brings the results of ranks that do not share rank 0's memory there. `start`: this rank's,
  /// nothing on a rank that is not the plan's.
  void bring_to_first(const run_plan& plan, const run_results& results, moment start);

 private:
  const tick_clock* clock_ = nullptr;
};

/// Runs a rank of a lock once, on the fabric's own port.
template <class Port>
void run_rank_on(Port& bare, const anywhere& lock, const run_plan& plan, const tick_clock& clock,
                 const run_results& results) {
  const auto act = [&](auto& port) {
    any_port_on on(port);
    lock.run_rank(on, lock.words(plan), plan, any_clock::on(clock), results);
  };
  fabric::counting<Port> counted(bare);
  if (!plan.trace) return act(counted);
  fabric::tracing traced(counted, results.trace_of(bare.rank()));
  act(traced);
}

[[nodiscard]] moment start_of_run(const tick_clock& clock, const run_results& results);

// Durations are taken on one rank. Only the moments at which each rank began and ended are compared
// between hosts, whose clocks count from moments of their own: these are sent as times since the
// barrier at the start, which all leave together but for the time that a message takes.

/// Moves all times of a rank's results; modulo 2^64, so that a time may lie before the start.
void move_times(rank_result& of, std::span<fabric::trace_event> events, moment by);

}  // namespace lockflight::bench
