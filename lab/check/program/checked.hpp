// The locks and programs that the checker checks.
#pragma once

#include <span>

#include "lab/printed/printed.hpp"
#include "lockflight/lock/all.hpp"
#include "lockflight/lock/msg_deferred.hpp"

namespace lockflight::check {

/// Every lock of the table, msg-deferred, which guards only operations that go through it, and the
/// locks as their papers print them.
using checked = lock::joined<
    lock::with_after<lock::all, lock::family<lock::msg>, lock::family<lock::msg_deferred>>,
    catalogue::printed>;

struct subject;
/// Makes the subjects of a part of these locks.
template <std::size_t Part, std::size_t Parts>
void make_subjects(std::span<subject> all);

}  // namespace lockflight::check
