// Participants on libfabric.
#include "lockflight/fabric/libfabric.hpp"

#include "bindings/c/wired.hpp"

int lockflight_join_libfabric(const lockflight_config* config, lockflight_participant** me) {
  return lockflight::capi::join_wired<lockflight::libfabric::environment>(config, me);
}
