// A process of this program that stays in the background lets go of all that it shares with its
// caller.
#pragma once

#include <vector>

namespace lockflight::cli {

/// The descriptors that this process has, without the standard streams.
[[nodiscard]] std::vector<int> open_descriptors();

/// Makes a session of its own, closes these descriptors of the caller, and lets go of the standard
/// streams and of the folder. A program that waits for the end of the caller's pipes does not
/// wait for this process.
void detach(const std::vector<int>& of_caller);

}  // namespace lockflight::cli
