#include "bindings/c/tuned.hpp"

#include <atomic>
#include <cstdio>

namespace lockflight::capi {

profile profile_or_warning() {
  static std::atomic<bool> warned{false};
  try {
    return profile::from_environment();
  } catch (const bad_profile& e) {
    if (!warned.exchange(true))
      std::fprintf(stderr, "lockflight: LOCKFLIGHT_PROFILE is ignored: %s\n", e.what());
    return {};
  }
}

profile agreed_profile(fabric::launch& in) {
  const std::string mine = in.rank() == 0 ? profile_or_warning().text() : "";
  return profile::parse(in.gather(mine).front(), "LOCKFLIGHT_PROFILE");
}

}  // namespace lockflight::capi
