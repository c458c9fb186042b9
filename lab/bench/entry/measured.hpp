// The locks and operations that the benchmark measures.
#pragma once

#include "catalogue/table.hpp"
#include "lab/bench/workload/no_lock.hpp"
#include "lab/printed/printed.hpp"

namespace lockflight::bench {

/// The lock table, the locks as their papers print them, and the pseudo lock that excludes no
/// participant.
using measured =
    lock::joined<catalogue::lock_table, catalogue::printed, lock::families<lock::family<no_lock>>>;

}  // namespace lockflight::bench
