// The two phases of a run on one rank: a warm-up that is thrown away, then the measured part. Each
// ends after a number of operations or at a time, and the rank shows now and then that it makes
// progress.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "lab/bench/workload/plan.hpp"
#include "lab/bench/workload/results.hpp"
#include "lockflight/rma/barrier.hpp"

namespace lockflight::bench {

template <rma::port Port, class Clock>
class phases {
 public:
  phases(Port& port, const run_plan& plan, const Clock& clock, const run_results& results)
      : port_(port),
        plan_(plan),
        clock_(clock),
        results_(results),
        mine_(results.of(port.rank())) {}

  /// Starts all ranks at the same time. The first barrier waits for ranks that are still being
  /// started, the second gives them one time to count from.
  void start(rma::barrier<Port>& all, const roles& who) {
    all.arrive_and_wait();
    if (port_.rank() == results_.leader()) results_.common().started = clock_.now();
    all.arrive_and_wait();
    started_ = results_.common().started;
    publish_every_ = clock_.ticks(clock_.look_up_seconds());
    if (plan_.ops > 0) {
      measured_ops_ = who.share(port_.rank(), plan_.ops);
      left_ = plan_.warm_up ? warm_up_of(measured_ops_) : 0;
    } else {
      phase_end_ = started_ + (plan_.warm_up ? clock_.ticks(warm_up_of(plan_.seconds)) : 0);
    }
  }

  /// True if there is an operation to do; `now` is the first reading of the clock. There is none
  /// where there are more ranks than operations.
  [[nodiscard]] bool begin(std::uint64_t now) {
    if (!plan_.warm_up) begin_measuring(now);
    if (left_ > 0) event_ = std::min(phase_end_, now + publish_every_);
    return left_ > 0;
  }

  /// After an operation that ended at `last`: whether there is another. The time of this check
  /// belongs to no operation: `last` moves on.
  [[nodiscard, gnu::always_inline]] bool next(std::uint64_t& last) {
    return (--left_ != 0 && last < event_) || turn(last);
  }

  /// When the last operation ended.
  void end(std::uint64_t last) {
    mine_.ended = last;
    mine_.operations = port_.counts();
  }

  /// Called when this rank issues no operation any more.
  void done() { mine_.progress.store(rank_result::all_done, std::memory_order_relaxed); }

 private:
  static constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();

  // A phase may be over, or it is time to show progress. False when all is done.
  bool turn(std::uint64_t& last) {
    bool over = left_ == 0 || last >= phase_end_;
    if (over && !measuring_) {
      begin_measuring(last);
      over = left_ == 0 || last >= phase_end_;
    }
    if (over) return false;
    publish(last);
    last = clock_.now();
    event_ = std::min(phase_end_, last + publish_every_);
    return true;
  }

  void begin_measuring(std::uint64_t& last) {
    measuring_ = true;
    // Without a warm-up there is nothing to discard, and reading each histogram of a million
    // simulated ranks would commit, or fault in, four pages of each.
    if (plan_.warm_up) mine_.begin_measuring();
    port_.reset_counts();
    last = clock_.now();
    mine_.begun = last;
    if (plan_.ops > 0) {
      left_ = measured_ops_;
    } else {
      mine_.begun = phase_end_;
      phase_end_ += clock_.ticks(plan_.seconds);
    }
  }

  void publish(std::uint64_t now) {
    double done = 0;
    if (plan_.ops > 0) {
      const auto warm_up = static_cast<double>(plan_.warm_up ? warm_up_of(measured_ops_) : 0);
      const auto all = warm_up + static_cast<double>(measured_ops_);
      const double gone = measuring_ ? all : warm_up;
      done = (gone - static_cast<double>(left_)) / all;
    } else {
      const auto all =
          clock_.ticks(plan_.seconds + (plan_.warm_up ? warm_up_of(plan_.seconds) : 0));
      done = static_cast<double>(now - started_) / static_cast<double>(all);
    }
    const double part = std::clamp(done, 0.0, 1.0) * rank_result::all_done;
    mine_.progress.store(static_cast<std::uint32_t>(part), std::memory_order_relaxed);
    mine_.beats.fetch_add(1, std::memory_order_relaxed);
  }

  Port& port_;
  const run_plan& plan_;
  Clock clock_;
  const run_results& results_;
  rank_result& mine_;
  bool measuring_ = false;
  std::uint64_t started_ = 0;
  std::uint64_t measured_ops_ = 0;
  std::uint64_t left_ = unlimited;       // operations of this phase
  std::uint64_t phase_end_ = unlimited;  // tick
  std::uint64_t event_ = unlimited;      // tick of the next check
  std::uint64_t publish_every_ = 0;
};

}  // namespace lockflight::bench
