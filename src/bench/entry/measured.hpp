// What the benchmark measures.
#pragma once

#include "bench/workload/no_lock.hpp"
#include "catalogue/table.hpp"

namespace lockflight::bench {

/// The lock table, and the pseudo lock that excludes no participant.
using measured = lock::joined<catalogue::lock_table, lock::families<lock::family<no_lock>>>;

}  // namespace lockflight::bench
