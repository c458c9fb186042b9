// The profile that the environment gives to a program: LOCKFLIGHT_PROFILE.
#pragma once

#include "lockflight/fabric/launch.hpp"
#include "lockflight/profile.hpp"

namespace lockflight::capi {

/// The profile that the environment names. If it cannot be used: an empty profile, and one warning
/// on standard error, since a program should not end because of a file that only makes it faster.
[[nodiscard]] profile profile_or_warning();

/// The first rank's, on all ranks: some parameters say where a lock's words lie. Collective.
[[nodiscard]] profile agreed_profile(fabric::launch& in);

}  // namespace lockflight::capi
