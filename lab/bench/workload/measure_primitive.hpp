// Workload primitive: the time of one operation of the fabric, without a lock.
#pragma once

#include <array>
#include <cstdint>

#include "lab/bench/workload/phases.hpp"
#include "lab/bench/workload/plan.hpp"
#include "lab/bench/workload/results.hpp"
#include "lockflight/rma/barrier.hpp"

namespace lockflight::bench {

template <rma::port Port, class Clock>
class primitive_run {
 public:
  primitive_run(rma::participant<Port>& me, const run_plan& plan, const Clock& clock,
                const run_results& results)
      : port_(me.port()),
        plan_(plan),
        clock_(clock),
        mine_(results.of(me.rank())),
        barrier_(me),
        phases_(port_, plan, clock, results),
        target_(target_in(plan.machine)),
        word_(me.cells().template take<rma::plain_cell>(1).at(target_)),
        atomic_(me.cells().template take<rma::nic_cell>(1).at(target_)) {}

  void run() {
    phases_.start(barrier_, roles(plan_));
    if (port_.rank() == origin)
      loop();
    else if (port_.rank() == target_ && plan_.does == operation::message)
      answer();
    phases_.done();
    barrier_.arrive_and_wait();
  }

 private:
  static constexpr rma::rank_t origin = 0;

  // The first rank of another node, or the next one on a machine of one node.
  [[nodiscard]] static rma::rank_t target_in(const rma::topology& machine) {
    for (rma::rank_t r = 1; r < machine.ranks(); ++r)
      if (!machine.same_node(origin, r)) return r;
    return 1;
  }

  void loop() {
    std::uint64_t last = clock_.now();
    for (bool more = phases_.begin(last); more; more = phases_.next(last)) {
      const std::uint64_t begun = clock_.now_ordered();
      operate();
      last = clock_.now_ordered();
      // A message is there after half the time in which its answer is back.
      const std::uint64_t took = (last - begun) / (plan_.does == operation::message ? 2 : 1);
      mine_.record(true, took, took);
    }
    phases_.end(last);
    if (plan_.does == operation::message) send(target_, 0);
  }

  void operate() {
    rma::word got = 0;
    switch (plan_.does) {
      case operation::get:
        port_.get(word_, got);
        break;
      case operation::put:
        port_.put(word_, 1);
        break;
      case operation::add:
        port_.add(atomic_, 1);
        break;
      case operation::fetch_add:
        port_.fetch_add(atomic_, 1, got);
        break;
      case operation::swap:
        port_.swap(atomic_, 1, got);
        break;
      case operation::compare_swap:
        port_.compare_swap(atomic_, 0, 0, got);
        break;
      case operation::message:
        send(target_, 1);
        static_cast<void>(receive());
        return;
    }
    port_.flush(target_);
  }

  void answer() {
    while (receive() != 0) send(origin, 1);
  }

  // Every fabric of the benchmark has messages (C27).
  void send(rma::rank_t to, rma::word what) { port_.send(to, {what, 0, 0}); }
  [[nodiscard]] rma::word receive() { return port_.receive().body[0]; }

  Port& port_;
  const run_plan& plan_;
  Clock clock_;
  rank_result& mine_;
  rma::barrier<Port> barrier_;
  phases<Port, Clock> phases_;
  rma::rank_t target_;
  rma::plain_cell word_;
  rma::nic_cell atomic_;
};

}  // namespace lockflight::bench
