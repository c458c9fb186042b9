// USDT probes of the drop-in, for the provider `lockflight_mpi`. docs/mpi-details.md lists them for
// users.
#pragma once

#include "base/usdt.hpp"

namespace lockflight::mpi_preload::probes {

// `window` is an address that is the same for all calls of a window in a process, `target` a rank
// or all_targets, and `kind` is "exclusive", "shared" or "all".

constexpr int all_targets = -1;

// A probe that nobody has attached is one instruction that does nothing, where it is inlined.

/// A lock call begins. It may fail: then `acquired` does not follow.
[[gnu::always_inline]] inline void acquire(const void* window, int target, const char* kind) {
  LOCKFLIGHT_PROBE3(lockflight_mpi, acquire, window, target, kind);
}
/// A lock call has succeeded.
[[gnu::always_inline]] inline void acquired(const void* window, int target, const char* kind) {
  LOCKFLIGHT_PROBE3(lockflight_mpi, acquired, window, target, kind);
}
/// An unlock call has succeeded.
[[gnu::always_inline]] inline void released(const void* window, int target) {
  LOCKFLIGHT_PROBE2(lockflight_mpi, released, window, target);
}

}  // namespace lockflight::mpi_preload::probes
