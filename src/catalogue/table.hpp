// The lock table: every lock that the programs list and run, baselines included.
#pragma once

#include "lockflight/baseline/pthread.hpp"
#include "lockflight/lock/all.hpp"
#include "lockflight/lock/msg_deferred.hpp"

namespace lockflight::catalogue {

/// msg-deferred guards only operations that go through it, so it is not in lock::all, whose locks
/// are treated alike.
using lock_table = lock::joined<
    lock::with_after<lock::all, lock::family<lock::msg>, lock::family<lock::msg_deferred>>,
    lock::families<lock::family<baseline::pthread_mutex>, lock::family<baseline::pthread_rwlock>>>;
static_assert(lock_table::are_listable());

}  // namespace lockflight::catalogue
