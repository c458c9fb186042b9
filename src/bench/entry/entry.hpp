// A lock as the benchmark's lists hold it: facts, and functions that run it. The templates behind
// the functions are compiled in files of their own for each lock (entry.cpp.in, anywhere.cpp.in).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "bench/bench.hpp"
#include "bench/workload/anywhere.hpp"
#include "bench/workload/plan.hpp"
#include "bench/workload/results.hpp"

namespace lockflight::bench {

struct lock_entry {
  lock_row row;
  /// How many ranks a lock with these parameters can tell apart.
  std::int64_t (*most_ranks)(const std::map<std::string, std::int64_t>& set);
  bool excludes = true;  ///< false: no lock at all, for comparison in workload dht
  /// On shared memory, with nothing in the way; not traced.
  void (*run_on_shm)(const run_plan&, const run_results&, const std::function<void()>& watch);
  anywhere through_any_port;
};

/// Every lock in the order of the lock table, then the pseudo lock. Generated (CMakeLists.txt).
[[nodiscard]] const std::vector<lock_entry>& entries();

/// The fabrics of this build.
[[nodiscard]] const std::vector<std::string>& fabrics();

}  // namespace lockflight::bench
