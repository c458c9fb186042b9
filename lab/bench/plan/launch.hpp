// A fabric whose ranks are started from outside, by a launcher such as mpirun: each process of the
// launch is a rank and runs the whole program. All of them make the same calls in the same order.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lab/bench/port/clock.hpp"
#include "lab/bench/workload/anywhere.hpp"
#include "lab/bench/workload/plan.hpp"
#include "lab/bench/workload/results.hpp"
#include "lockflight/fabric/findings.hpp"

namespace lockflight::bench {

class launch {
 public:
  virtual ~launch() = default;

  /// The name for --fabric.
  [[nodiscard]] virtual std::string fabric() const = 0;

  /// Joins the other processes of the launch. Called before the functions below.
  virtual void start() = 0;
  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int ranks() const = 0;
  /// True if this rank prints and writes.
  [[nodiscard]] virtual bool speaks() const { return rank() == 0; }
  /// True if `holds` is true on all ranks.
  [[nodiscard]] virtual bool all(bool holds) = 0;
  /// Rank 0's value, on all ranks.
  [[nodiscard]] virtual double first(double mine) = 0;
  /// A rank's text, and the lowest rank of its host.
  struct word_from_rank {
    int first_of_host = 0;
    std::string text;
  };
  /// The text of each rank, by rank. Collective.
  [[nodiscard]] virtual std::vector<word_from_rank> gather(const std::string& mine) = 0;
  /// The clock that all ranks time with: the tick of one is as long as another's, whatever their
  /// hosts. Collective at the first call.
  [[nodiscard]] virtual const tick_clock& clock() = 0;
  /// The levels of the first `procs` ranks.
  [[nodiscard]] virtual rma::topology machine(int procs) = 0;

  /// Memory for the results of the plan's ranks, shared among ranks that share memory.
  [[nodiscard]] virtual std::shared_ptr<const run_results> results(const run_plan& plan) = 0;
  /// Runs one lock once; then brings all ranks' results to rank 0.
  virtual void run(const anywhere& lock, const run_plan& plan, const run_results& results) = 0;
  /// Reports the reason, and ends all ranks with exit code 3. Any thread may call this.
  [[noreturn]] virtual void abandon(const std::string& why) = 0;

  /// The result of the fabric's own trial, for people; rank 0's is used.
  struct diagnosis {
    std::vector<lockflight::fabric::host_findings> hosts;  ///< empty on one host
    bool ordered_posts = false;                            ///< the fabric's ports order them (C6)
    std::vector<std::pair<std::string, std::string>> findings;
    std::vector<std::string> advice;
    bool usable = true;
  };
  [[nodiscard]] virtual diagnosis diagnose() = 0;
};

/// The launch that this program can join; null: none is built in.
[[nodiscard]] launch* built_in_launch();
/// Called by main() before anything else.
void build_in(launch& it);

/// The launch of that fabric; null if the fabric is another.
[[nodiscard]] launch* launch_of(const std::string& fabric);

/// True if this process is the one of its launch that prints and writes.
[[nodiscard]] bool speaks();

}  // namespace lockflight::bench
