// A run of a comparison, ready to be carried out: all its settings are checked.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "catalogue/parameters.hpp"
#include "lab/bench/bench.hpp"
#include "lab/bench/workload/zipf.hpp"
#include "lab/sim/machine.hpp"
#include "lockflight/rma/topology.hpp"

namespace lockflight::bench {

/// The workloads of the RMA paper, section 5; of the ALock paper, section 6; of the SCC paper,
/// section 6; of the DLM paper, section 5; of the ShiftLock and the DecLock papers.
/// plan/choices.cpp describes each.
enum class workload : std::uint8_t {
  lb,
  ecsb,
  sob,
  wcsb,
  warb,
  dht,
  table,
  mix,
  cascade,
  contention,
  dht_writer,
  primitive,
  stencil,
  zipf,
};

/// The operation that workload primitive repeats.
enum class operation : std::uint8_t { get, put, add, fetch_add, swap, compare_swap, message };

/// True if each operation chooses among several locks.
constexpr bool has_many_locks(workload w) {
  return w == workload::table || w == workload::mix || w == workload::contention ||
         w == workload::zipf;
}
/// True if rank 0 is timed while the others wait for it.
constexpr bool goes_in_rounds(workload w) {
  return w == workload::cascade || w == workload::dht_writer;
}

/// True if a workload takes no lock.
constexpr bool takes_no_lock(workload w) {
  return w == workload::primitive || w == workload::stencil;
}

/// True if only rank 0's operations are measured.
constexpr bool measures_rank_0(workload w) { return goes_in_rounds(w) || w == workload::primitive; }

struct run_plan {
  workload what = workload::ecsb;
  rma::topology machine = rma::topology::flat(1);
  double writers = 0;
  role by = role::operation;
  std::uint64_t ops = 0;
  double seconds = 1;
  std::uint64_t seed = 1;
  catalogue::parameter_values set{};
  bool threads = false;
  bool pin = true;
  std::string waiting = "auto";
  bool trace = false;
  bool warm_up = true;            ///< false: all of the run is measured
  std::uint64_t most_events = 0;  ///< of the simulator: then it ends the run; 0: any number
  bool far_witness = false;       ///< exclusion is checked by one-sided operations
  std::uint64_t sample = 1;       ///< one operation in this many is timed
  std::uint32_t locks = 1;        ///< the locks that operations choose from
  double locality = 1;            ///< table: fraction of a rank's operations on locks of its node
  double think_us = 0;            ///< table: between two operations of a rank, not timed
  double call_us = 0;             ///< table: of each operation, before its acquire, timed
  double hold_us = 0;             ///< contention: how long a lock is held
  double skew = 0;                ///< zipf: the exponent
  std::shared_ptr<const zipf_law> popularity = nullptr;  ///< zipf: of the locks
  bool server_busy = false;                              ///< contention: rank 0 computes meanwhile
  std::uint32_t server_load = 0;    ///< contention, simulated: busy processes beside rank 0
  std::uint32_t bytes = 0;          ///< dht-writer: written each time
  operation does = operation::get;  ///< primitive
  std::optional<rma::rank_t> flags_at = std::nullopt;  ///< stencil: of all ranks; none: its own
  std::shared_ptr<const sim::machine_profile> profile = nullptr;  ///< on a simulated machine
  std::vector<std::uint32_t> nodes{};  ///< simulated: which ones; empty: the first
};

/// The ranks that issue operations that are measured, and their roles. With dht and contention and
/// several ranks, rank 0 only owns what the others access, as in the papers; with zipf and several
/// nodes, all ranks of its node do nothing else. In rounds, and of primitives, only rank 0 is
/// measured.
class roles {
 public:
  explicit roles(const run_plan& plan)
      : first_(first_client(plan)),
        active_(measures_rank_0(plan.what) ? 1 : plan.machine.ranks() - first_),
        by_(plan.by),
        fraction_(plan.writers),
        writers_(std::lround(plan.writers * active_)) {}

  [[nodiscard]] int active() const { return active_; }
  [[nodiscard]] bool is_active(rma::rank_t rank) const {
    return rank >= first_ && rank - first_ < active_;
  }
  /// The active ranks, counted from 0.
  [[nodiscard]] int client(rma::rank_t rank) const { return rank - first_; }

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
  [[nodiscard]] static int first_client(const run_plan& plan) {
    const int ranks = plan.machine.ranks();
    if (plan.what == workload::zipf && plan.machine.nodes() > 1) {
      int first = 1;
      while (first < ranks && plan.machine.same_node(0, first)) ++first;
      return first < ranks ? first : 1;
    }
    const bool owner_only = plan.what == workload::dht || plan.what == workload::contention ||
                            plan.what == workload::zipf;
    return owner_only && ranks > 1 ? 1 : 0;
  }

  int first_;
  int active_;
  role by_;
  double fraction_;
  std::int64_t writers_;
};

/// dht-writer: the most bytes that are written.
constexpr std::uint32_t most_bytes = 1u << 16;

/// The warm-up, which is discarded, unless the plan has none: a ninth of the measured part, so that
/// it is the first tenth of all. The requested length is the measured one.
constexpr std::uint64_t warm_up_of(std::uint64_t ops) { return (ops + 8) / 9; }
constexpr double warm_up_of(double seconds) { return seconds / 9; }

}  // namespace lockflight::bench
