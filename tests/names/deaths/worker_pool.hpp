// The worker processes of a campaign and the domain that they use. The campaign's process starts,
// signals and ends the workers here.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "lockflight/domain.hpp"
#include "tests/names/deaths/options.hpp"
#include "tests/names/deaths/shared_state.hpp"

namespace lockflight::test {

class worker_pool {
 public:
  explicit worker_pool(const campaign_options& options);
  worker_pool(const worker_pool&) = delete;
  worker_pool& operator=(const worker_pool&) = delete;
  /// Kills all workers and removes the domain.
  ~worker_pool();

  [[nodiscard]] shared_state& all() const { return *all_; }
  [[nodiscard]] worker_state& state(int w) const { return all_->worker[w]; }
  [[nodiscard]] domain open_domain() const { return domain::open(name_, domain_options_); }
  /// Returns false if there is no domain.
  bool remove_domain(bool force) const {
    return domain::remove(name_, force, domain_options_.mode);
  }

  /// Starts worker `w`, which must not be running. With --spaces a worker with an even number gets
  /// a namespace of processes of its own. With --users the even and the odd workers are of two
  /// users.
  void start(int w, std::uint64_t seed);
  void signal(int w, int number) const;
  /// Waits until worker `w`, which has been killed or told to exit, has ended.
  void wait_for_end(int w) const;
  /// Lets all workers end by themselves, or kills them if a rule is broken. `stopped` is the worker
  /// that is stopped for long, or -1.
  void end_all(int stopped);

  /// The kind of the lock that a worker holds or waits for. The texts of this and the next function
  /// come from the shared state alone: opening the domain would deal with deaths.
  [[nodiscard]] std::string lock_in_use(int w) const;
  [[nodiscard]] std::string locks_in_use(int stopped) const;

 private:
  [[nodiscard]] bool has_a_space(int w) const { return options_.spaces && w % 2 == 0; }
  /// Makes a namespace of processes and a child in it. Returns in the child alone.
  void enter_a_space(int w);

  const campaign_options& options_;
  domain_options domain_options_;
  std::string name_;
  int memory_ = -1;
  shared_state* all_ = nullptr;
  std::vector<pid_t> pids_;  ///< the children; a worker in a space is the child of one
};

}  // namespace lockflight::test
