#pragma once

namespace lockflight::shm::detail {

/// Enters this process into those that membarrier's global expedited command reaches. False where
/// the kernel lacks it; stores are fenced then.
[[nodiscard]] bool register_membarrier();
/// Every processor that runs such a process comes to a full barrier before this returns.
void membarrier();

}  // namespace lockflight::shm::detail
