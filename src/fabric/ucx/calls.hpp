// UCX's status codes as exceptions.
#pragma once

#include <ucp/api/ucp.h>

#include <string>

#include "lockflight/fabric/wired.hpp"

namespace lockflight::ucx::detail {

inline void check(ucs_status_t status, const char* call) {
  if (status != UCS_OK)
    throw wired::unavailable(std::string("UCX: ") + call + " failed: " + ucs_status_string(status));
}

}  // namespace lockflight::ucx::detail
