#pragma once

namespace lockflight::shm::detail {

/// Enters this process into those that membarrier's global expedited command reaches. False where
/// the kernel lacks it; stores are fenced then.
[[nodiscard]] bool register_membarrier();

}  // namespace lockflight::shm::detail
