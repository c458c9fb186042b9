// What the benchmark measures.
#pragma once

#include "bench/workload/no_lock.hpp"
#include "lockflight/baseline/pthread.hpp"
#include "lockflight/lock/all.hpp"
#include "lockflight/lock/msg_deferred.hpp"

namespace lockflight::bench {

/// Every lock of the table, the baselines, and the pseudo lock that excludes no participant, which
/// is not in the lock table. msg-deferred guards only operations that go through it, so it is not
/// in lock::all, whose locks are treated alike.
using measured = lock::joined<
    lock::with_after<lock::all, lock::family<lock::msg>, lock::family<lock::msg_deferred>>,
    lock::families<lock::family<baseline::pthread_mutex>, lock::family<baseline::pthread_rwlock>,
                   lock::family<no_lock>>>;

}  // namespace lockflight::bench
