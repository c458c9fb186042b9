// The profile that programs are given from outside, by LOCKFLIGHT_PROFILE.
#pragma once

#include "lockflight/profile.hpp"

namespace lockflight::capi {

/// What the environment names; no lock, and a warning once on standard error, if that cannot be
/// used. A program should not end for a file that only makes it faster.
[[nodiscard]] profile profile_or_warning();

}  // namespace lockflight::capi
