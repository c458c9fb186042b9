// A lock in the benchmark's lists: facts, and functions that run it. The templates behind
// the functions are compiled in files of their own for each lock (entry.cpp.in, anywhere.cpp.in).
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "bench/workload/anywhere.hpp"
#include "bench/workload/plan.hpp"
#include "bench/workload/results.hpp"
#include "catalogue/parameters.hpp"
#include "lockflight/lock/about.hpp"

namespace lockflight::bench {

struct lock_entry {
  lock::facts about;
  catalogue::parameter_rows parameters;
  bool excludes;  ///< false: no lock at all, for comparison in workload dht
  /// How many ranks a lock with these parameters can distinguish.
  std::int64_t (*most_ranks)(const catalogue::parameter_values& set);
  /// On shared memory, without virtual calls; not traced.
  void (*run_on_shm)(const run_plan&, const run_results&, const std::function<void()>& watch);
  const anywhere& through_any_port;
};

/// Every lock in the order of the lock table, then the pseudo lock. Generated (CMakeLists.txt).
[[nodiscard]] std::span<const lock_entry* const> entries();

}  // namespace lockflight::bench
