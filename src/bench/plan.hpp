// One run of a comparison, ready to be carried out: nothing in it can be refused any more.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <string>

#include "bench/bench.hpp"
#include "lockflight/rma/topology.hpp"

namespace lockflight::bench {

/// The workloads of the RMA paper, section 5. What each does is said in catalogue.cpp.
enum class workload : std::uint8_t { lb, ecsb, sob, wcsb, warb, dht };

struct run_plan {
  workload what = workload::ecsb;
  rma::topology machine = rma::topology::flat(1);
  double writers = 0;
  role by = role::operation;
  std::uint64_t ops = 0;
  double seconds = 1;
  std::uint64_t seed = 1;
  std::map<std::string, std::int64_t> set{};
  bool threads = false;
  bool pin = true;
  std::string waiting = "auto";
  bool trace = false;
};

/// Which ranks issue operations, and in which roles. With dht and several ranks, rank 0 only owns
/// what the others access, as in the paper.
class roles {
 public:
  explicit roles(const run_plan& plan)
      : first_(plan.what == workload::dht && plan.machine.ranks() > 1 ? 1 : 0),
        active_(plan.machine.ranks() - first_),
        by_(plan.by),
        fraction_(plan.writers),
        writers_(std::lround(plan.writers * active_)) {}

  [[nodiscard]] int active() const { return active_; }
  [[nodiscard]] bool is_active(rma::rank_t rank) const { return rank >= first_; }

  /// Of one rank's operations, how many write.
  [[nodiscard]] double writes(rma::rank_t rank) const {
    if (by_ == role::operation) return fraction_;
    return is_writer(rank) ? 1 : 0;
  }

  /// With roles by process: W = round(F_W * A) of the A active ranks write all the time, the first
  /// and then as evenly over the ranks as they go: the i-th does if (i * W) mod A < W.
  [[nodiscard]] bool is_writer(rma::rank_t rank) const {
    return (std::int64_t{rank} - first_) * writers_ % active_ < writers_;
  }

  /// A rank's share of n operations.
  [[nodiscard]] std::uint64_t share(rma::rank_t rank, std::uint64_t n) const {
    if (!is_active(rank)) return 0;
    const auto all = static_cast<std::uint64_t>(active_);
    return n / all + (static_cast<std::uint64_t>(rank - first_) < n % all ? 1 : 0);
  }

 private:
  int first_;
  int active_;
  role by_;
  double fraction_;
  std::int64_t writers_;
};

/// What is run before the measured part and thrown away: a ninth of it, so that it is the first
/// tenth of all. What was asked for is what is measured.
constexpr std::uint64_t warm_up_of(std::uint64_t ops) { return (ops + 8) / 9; }
constexpr double warm_up_of(double seconds) { return seconds / 9; }

}  // namespace lockflight::bench
