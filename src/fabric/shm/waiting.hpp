#pragma once

#include <string>

namespace lockflight::shm::detail {

/// Enters this process into those that membarrier reaches. False where the kernel refuses it, or a
/// filter that confines this process does.
[[nodiscard]] bool register_membarrier();
/// Every processor that runs such a process comes to a full barrier before this returns. False if
/// it is refused; errno says why.
[[nodiscard]] bool membarrier();
/// What a rank reports that cannot go on without this system call.
[[nodiscard]] std::string refused(const char* call, int error);

}  // namespace lockflight::shm::detail
