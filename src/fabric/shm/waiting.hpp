#pragma once

#include <string>

#include "lockflight/fabric/shm.hpp"

namespace lockflight::shm::detail {

/// Registers this process for membarrier. False if the kernel refuses it, or a filter that confines
/// this process.
[[nodiscard]] bool register_membarrier();
/// Every processor that runs such a process comes to a full barrier before this returns. False if
/// it is refused; errno says why.
[[nodiscard]] bool membarrier();
/// Called before there are ranks: each of their stores has a fence from the beginning.
void begin_with_fenced_stores(const segment_view& in, int ranks);
/// From now on each store of all ranks has a fence, if the barrier is not refused.
void fence_stores(const segment_view& in, int ranks);
/// The message of a rank that cannot go on without this system call.
[[nodiscard]] std::string refused(const char* call, int error);

}  // namespace lockflight::shm::detail
