#pragma once

namespace lockflight::shm::detail {

/// Registers this process for membarrier's global expedited command. False where the kernel lacks
/// it; stores are fenced then.
[[nodiscard]] bool register_membarrier();
/// Every processor that runs a registered process passes a full barrier before this returns.
void membarrier();

}  // namespace lockflight::shm::detail
