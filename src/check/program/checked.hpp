// What the checker checks.
#pragma once

#include <span>

#include "lockflight/lock/all.hpp"
#include "lockflight/lock/msg_deferred.hpp"
#include "lockflight/lock/rma_rw_listing.hpp"

namespace lockflight::check {

/// Every lock of the table, rma-rw as its paper prints it, and msg-deferred, which guards only
/// operations that go through it.
using checked = lock::with_after<
    lock::with_after<lock::all, lock::family<lock::rma_rw>, lock::family<lock::rma_rw_listing>>,
    lock::family<lock::msg>, lock::family<lock::msg_deferred>>;

struct subject;
/// Makes the subjects of a part of these locks.
template <std::size_t Part, std::size_t Parts>
void make_subjects(std::span<subject> all);

}  // namespace lockflight::check
