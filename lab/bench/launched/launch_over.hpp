// The launch of a fabric whose ranks come together without MPI, as the benchmark and the doctor use
// it.
#pragma once

#include <optional>

#include "lab/bench/launched/launched.hpp"
#include "lockflight/fabric/launch.hpp"

namespace lockflight::bench {

/// `Fabric` has the fabric's name, environment, host_memory and port, its discover and run_ports,
/// and a function `diagnose`.
template <class Fabric>
class launch_over : public launched {
 public:
  [[nodiscard]] std::string fabric() const override { return Fabric::name; }
  void start() override {
    if (!world_) world_.emplace();
  }
  [[nodiscard]] int rank() const override { return world_ ? world_->rank() : 0; }
  [[nodiscard]] int ranks() const override { return world_ ? world_->size() : 1; }
  [[nodiscard]] bool speaks() const override {
    if constexpr (requires { world_->first_is_gone(); })
      return rank() == 0 || (world_ && world_->first_is_gone());
    else
      return launched::speaks();
  }
  [[nodiscard]] bool all(bool holds) override { return world_->all(holds); }
  [[nodiscard]] double first(double mine) override { return world_->first(mine); }
  [[nodiscard]] rma::topology machine(int procs) override {
    return Fabric::discover(*world_, procs).machine;
  }
  [[nodiscard]] std::shared_ptr<const run_results> results(const run_plan& plan) override {
    current_ = std::make_shared<shared_results>(*world_, plan);
    return {current_, &current_->results};
  }
  void run(const anywhere& lock, const run_plan& plan, const run_results& results) override;
  [[noreturn]] void abandon(const std::string& why) override { lockflight::fabric::abandon(why); }
  [[nodiscard]] diagnosis diagnose() override { return Fabric::diagnose(*world_); }

 protected:
  [[nodiscard]] std::vector<std::string> texts(const std::string& mine) override {
    return world_->gather(mine);
  }
  [[nodiscard]] std::vector<int> first_of_host() override { return world_->first_of_host(); }
  [[nodiscard]] double least(double mine) override { return world_->least(mine); }

 private:
  /// Results in memory that the ranks of each host share. The usual witness lies there too: it sees
  /// violations among ranks of one host; for two holders on different hosts a plan has
  /// `far_witness`.
  struct shared_results {
    typename Fabric::host_memory memory;
    run_results results;

    shared_results(typename Fabric::environment& in, const run_plan& plan)
        : memory(in, plan.machine.ranks(), run_results::bytes_for(plan)),
          results(plan, memory.data(), memory.leader(), memory.whole()) {}
  };

  std::optional<typename Fabric::environment> world_;
  std::shared_ptr<shared_results> current_;
};

template <class Fabric>
void launch_over<Fabric>::run(const anywhere& lock, const run_plan& plan,
                              const run_results& results) {
  const tick_clock& timed_by = clock();
  const lockflight::fabric::run_config what{
      .machine = plan.machine, .waiting = plan.waiting, .words_per_rank = lock.words(plan)};
  Fabric::run_ports(*world_, what, [&](typename Fabric::port& p) {
    run_rank_on(p, lock, plan, timed_by, results);
  });
  // Ranks beyond the plan's have no results, and the next exchange is all ranks'.
  if (world_->all(rank() >= plan.machine.ranks() || results.whole())) return;
  bring_to_first(plan, results,
                 rank() < plan.machine.ranks() ? start_of_run(timed_by, results) : moment{});
}

}  // namespace lockflight::bench
