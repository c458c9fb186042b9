// The locks and operations that the benchmark measures.
#pragma once

#include "bench/workload/no_lock.hpp"
#include "catalogue/printed.hpp"
#include "catalogue/table.hpp"

namespace lockflight::bench {

/// The lock table, the locks as their papers print them, and the pseudo lock that excludes no
/// participant.
using measured =
    lock::joined<catalogue::lock_table, catalogue::printed, lock::families<lock::family<no_lock>>>;

}  // namespace lockflight::bench
