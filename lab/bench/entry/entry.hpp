// A lock in the benchmark's lists: facts, and functions that run it. The templates behind the
// functions are compiled in several files (on_shm.cpp.in, anywhere.cpp.in).
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "catalogue/parameters.hpp"
#include "lab/bench/workload/anywhere.hpp"
#include "lab/bench/workload/plan.hpp"
#include "lab/bench/workload/results.hpp"
#include "lockflight/lock/about.hpp"

namespace lockflight::bench {

struct lock_entry {
  lock::facts about;
  catalogue::parameter_rows parameters;
  bool excludes;  ///< false: no lock at all, for comparison in workload dht
  /// How many ranks a lock with these parameters can distinguish.
  std::int64_t (*most_ranks)(const catalogue::parameter_values& set);
  /// On shared memory, without virtual calls; not traced. Null for a lock as printed.
  void (*run_on_shm)(const run_plan&, const run_results&, const std::function<void()>& watch);
  anywhere through_any_port;
};

/// Every lock in the order of the lock table, then the locks as printed, then the pseudo lock.
[[nodiscard]] std::span<const lock_entry> entries();

/// Fill in the entries of a part of the locks: all but `through_any_port`, and that.
template <std::size_t Part, std::size_t Parts>
void make_entries(std::span<lock_entry> all);
template <std::size_t Part, std::size_t Parts>
void make_all_anywhere(std::span<lock_entry> all);

}  // namespace lockflight::bench
