// A lock as the benchmark's lists hold it: facts, and a function that runs it. The templates behind
// the function are compiled in a file of their own for each lock (lock.cpp.in).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "bench/bench.hpp"
#include "bench/plan.hpp"
#include "bench/results.hpp"

namespace lockflight::bench {

struct lock_entry {
  lock_row row;
  /// How many ranks a lock with these parameters can tell apart.
  std::int64_t (*most_ranks)(const std::map<std::string, std::int64_t>& set);
  bool excludes = true;  ///< false: no lock at all, for comparison in workload dht
  void (*run_on_shm)(const run_plan&, const run_results&, const std::function<void()>& watch);
};

/// Every lock in the order of the lock table, then the pseudo lock. Generated (CMakeLists.txt).
[[nodiscard]] const std::vector<lock_entry>& entries();

/// The fabrics of this build.
[[nodiscard]] const std::vector<std::string>& fabrics();

}  // namespace lockflight::bench
