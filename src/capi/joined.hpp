// What participants that join have in common, whatever network they join on.
#pragma once

#include "capi/config.hpp"

namespace lockflight::capi {

/// `found`, or the levels that the caller wants instead, which have as many ranks. Throws
/// std::invalid_argument that names the member, on members that are lockflight_run's too.
[[nodiscard]] rma::topology machine_of_joined(rma::topology found, const lockflight_config& what,
                                              const std::string& whose_ranks);

}  // namespace lockflight::capi
