// The MPI launch, as the benchmark and the doctor use it. Includes no mpi.h: compiled once, linked
// with the fabric of each MPI.
#pragma once

#include <optional>

#include "bench/plan/launch.hpp"
#include "lockflight/fabric/mpi.hpp"

namespace lockflight::bench {

class mpi_launch : public launch {
 public:
  [[nodiscard]] std::string fabric() const override { return "mpi"; }
  void start() override;
  [[nodiscard]] int rank() const override { return world_ ? world_->rank() : 0; }
  [[nodiscard]] int ranks() const override { return world_ ? world_->size() : 1; }
  [[nodiscard]] bool all(bool holds) override { return world_->all(holds); }
  [[nodiscard]] double first(double mine) override { return world_->first(mine); }
  [[nodiscard]] std::vector<word_from_rank> gather(const std::string& mine) override;
  [[nodiscard]] const tick_clock& clock() override;
  [[nodiscard]] rma::topology machine(int procs) override { return mpi::discover(procs).machine; }
  [[nodiscard]] std::shared_ptr<const run_results> results(const run_plan& plan) override;
  void run(const anywhere& lock, const run_plan& plan, const run_results& results) override;
  [[noreturn]] void abandon(const std::string& why) override { mpi::abandon(why); }
  [[nodiscard]] diagnosis diagnose() override;

 private:
  struct shared_results;

  std::optional<mpi::environment> world_;
  std::shared_ptr<shared_results> current_;
  const tick_clock* clock_ = nullptr;
};

}  // namespace lockflight::bench
