// The locks of a campaign: one named lock of each kind, in the order of the kinds. A lock's number
// is its place in that order.
#pragma once

#include <string>
#include <vector>

#include "lockflight/domain.hpp"

namespace lockflight::test {

constexpr int most_locks = 32;

const std::vector<std::string>& kinds();
const std::string& kind_of(int lock);
int lock_count();

/// Opens a handle to the lock of that number.
named_lock open_lock(const domain& in, int lock);

}  // namespace lockflight::test
