// The OpenSHMEM launch, as the benchmark and the doctor use it.
#pragma once

#include <optional>

#include "bench/launched/launched.hpp"
#include "lockflight/fabric/oshmem.hpp"

namespace lockflight::bench {

class oshmem_launch : public launched {
 public:
  [[nodiscard]] std::string fabric() const override { return "oshmem"; }
  void start() override;
  [[nodiscard]] int rank() const override { return world_ ? world_->rank() : 0; }
  [[nodiscard]] int ranks() const override { return world_ ? world_->size() : 1; }
  [[nodiscard]] bool all(bool holds) override { return world_->all(holds); }
  [[nodiscard]] double first(double mine) override { return world_->first(mine); }
  [[nodiscard]] rma::topology machine(int procs) override {
    return oshmem::discover(*world_, procs).machine;
  }
  [[nodiscard]] std::shared_ptr<const run_results> results(const run_plan& plan) override;
  void run(const anywhere& lock, const run_plan& plan, const run_results& results) override;
  [[noreturn]] void abandon(const std::string& why) override { oshmem::abandon(why); }
  [[nodiscard]] diagnosis diagnose() override;

 protected:
  [[nodiscard]] std::vector<std::string> texts(const std::string& mine) override {
    return world_->gather(mine);
  }
  [[nodiscard]] std::vector<int> first_of_host() override { return world_->first_of_host(); }
  [[nodiscard]] double least(double mine) override { return world_->least(mine); }

 private:
  struct shared_results;

  std::optional<oshmem::environment> world_;
  std::shared_ptr<shared_results> current_;
};

}  // namespace lockflight::bench
