// The ranks' measurements, in memory that they share with the starting process.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "lab/bench/workload/histogram.hpp"
#include "lab/bench/workload/plan.hpp"
#include "lab/bench/workload/witness.hpp"
#include "lockflight/fabric/counting.hpp"
#include "lockflight/fabric/tracing.hpp"
#include "lockflight/lock/part/queue_tree.hpp"

namespace lockflight::bench {

/// The measurements of one rank. Only the rank writes them; the starter reads them when the rank
/// has ended, except atomic members. The numbers are of the measured part, unless a comment says
/// otherwise. Zeroes are the start.
///
/// The members that every rank touches come first, so that a million ranks with an operation each
/// take a few pages each.
struct alignas(128) rank_result {
  std::uint64_t longest_wait = 0;
  std::uint64_t waited = 0;  ///< ticks of all acquires, where these are timed apart
  std::uint64_t begun = 0;   ///< the tick at which the measured part began
  std::uint64_t ended = 0;
  std::uint64_t most_of_a_release = 0;  ///< network operations; simulated, with many locks
  fabric::operation_counts operations;
  std::array<std::uint64_t, lock::most_levels> handoffs{};
  std::uint64_t untimed_reads = 0;
  std::uint64_t untimed_writes = 0;
  std::uint64_t violations = 0;  ///< of the whole run, warm-up included
  std::uint64_t increments = 0;  ///< of the shared counter, in the whole run
  std::uint64_t served = 0;      ///< messages of a rank that only serves, in the whole run

  // For workloads that time acquire and release apart and report their deviations.
  double waited_squared = 0;    ///< squares of ticks
  double released_squared = 0;  ///< squares of ticks
  // On a simulated machine.
  std::uint64_t all_cas = 0;     ///< posted compare-and-swaps in the whole run
  std::uint64_t failed_cas = 0;  ///< compare-swaps that changed nothing
  double on_messages = 0;        ///< of a server: the part of the run that its processor needed
  double on_atomics = 0;         ///< of a server: the same of its card's atomic units

  std::uint64_t trace_used = 0;
  std::uint64_t trace_dropped = 0;  ///< events for which the trace had no room

  bool lost = false;  ///< the rank's process was killed and its measurements are incomplete;
                      ///< written by the starter

  std::atomic<std::uint32_t> beats{0};     ///< grows while the rank makes progress
  std::atomic<std::uint32_t> progress{0};  ///< how much is done, of `all_done`
  static constexpr std::uint32_t all_done = 1'000'000;

  histogram read;   ///< latencies in ticks
  histogram write;  ///< latencies in ticks
  // The same once more, with many locks:
  histogram local;   ///< acquires of locks of the own node
  histogram remote;  ///< the others

  [[nodiscard]] std::uint64_t reads() const { return read.count() + untimed_reads; }
  [[nodiscard]] std::uint64_t writes() const { return write.count() + untimed_writes; }
  [[nodiscard]] std::uint64_t ops() const { return reads() + writes(); }

  [[gnu::always_inline]] void record(bool writes, std::uint64_t latency, std::uint64_t wait) {
    (writes ? write : read).record(latency);
    longest_wait = std::max(longest_wait, wait);
    waited += wait;
  }

  /// The halves of an operation, for their deviations.
  [[gnu::always_inline]] void record_halves(std::uint64_t wait, std::uint64_t release) {
    const auto a = static_cast<double>(wait);
    const auto r = static_cast<double>(release);
    waited_squared += a * a;
    released_squared += r * r;
  }

  /// Discards the results of the warm-up.
  void begin_measuring() {
    read.clear();
    write.clear();
    local.clear();
    remote.clear();
    longest_wait = 0;
    waited = 0;
    waited_squared = 0;
    released_squared = 0;
    most_of_a_release = 0;
    untimed_reads = 0;
    untimed_writes = 0;
    handoffs = {};
    trace_used = 0;
    trace_dropped = 0;
  }
};

/// The results of all ranks together.
struct common_block {
  alignas(128) std::uint64_t started = 0;  ///< rank 0's tick before the barrier at the start
};

/// An anonymous mapping that, if it is shared, survives a fork shared. Committed lazily.
class mapping {
 public:
  /// Throws std::system_error.
  mapping(std::size_t bytes, bool shared);
  ~mapping();
  mapping(const mapping&) = delete;
  mapping& operator=(const mapping&) = delete;

  [[nodiscard]] std::byte* data() const { return data_; }

 private:
  std::byte* data_;
  std::size_t bytes_;
};

/// The results of one run. Made before the ranks start.
class run_results {
 public:
  explicit run_results(const run_plan& plan);
  /// The same in memory that the caller shares among ranks, zeroed, of `bytes_for` bytes. `leader`
  /// is the lowest rank that shares it; `whole` is whether all ranks do.
  run_results(const run_plan& plan, std::byte* memory, rma::rank_t leader, bool whole);
  [[nodiscard]] static std::size_t bytes_for(const run_plan& plan);

  /// The rank that writes the common results of the ranks that share this memory.
  [[nodiscard]] rma::rank_t leader() const { return leader_; }
  /// True if all ranks' results are here while they run.
  [[nodiscard]] bool whole() const { return whole_; }

  [[nodiscard]] common_block& common() const { return *common_; }
  /// The check of one lock.
  [[nodiscard]] witness& seen(std::uint32_t lock) const { return seen_[lock]; }
  [[nodiscard]] std::span<rank_result> ranks() const { return ranks_; }
  [[nodiscard]] rank_result& of(rma::rank_t rank) const {
    return ranks_[static_cast<std::size_t>(rank)];
  }

  /// Room for a rank's events; empty without tracing.
  [[nodiscard]] std::span<fabric::trace_event> trace_room(rma::rank_t rank) const {
    return {events_ + static_cast<std::size_t>(rank) * events_each_, events_each_};
  }
  [[nodiscard]] fabric::trace_buffer trace_of(rma::rank_t rank) const {
    rank_result& r = of(rank);
    return {trace_room(rank), r.trace_used, r.trace_dropped};
  }

 private:
  std::optional<mapping> memory_;
  rma::rank_t leader_ = 0;
  bool whole_ = true;
  std::size_t events_each_;
  common_block* common_;
  witness* seen_;
  std::span<rank_result> ranks_;
  fabric::trace_event* events_;
};

}  // namespace lockflight::bench
