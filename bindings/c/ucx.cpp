// Participants on UCX.
#include "lockflight/fabric/ucx.hpp"
#include "bindings/c/wired.hpp"

int lockflight_join_ucx(const lockflight_config* config, lockflight_participant** me) {
  return lockflight::capi::join_wired<lockflight::ucx::environment>(config, me);
}
