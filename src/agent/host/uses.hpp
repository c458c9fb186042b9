// What this host does with the locks of its domain, for agents of other hosts that ask.
#pragma once

#include <string>
#include <vector>

#include "lockflight/domain.hpp"

namespace lockflight::cluster {

/// The uses of that lock on this host, or with an empty name of all locks. At most `most` of them:
/// the holders first.
[[nodiscard]] std::vector<domain_use_elsewhere> uses_here(const domain& in, const std::string& host,
                                                          const std::string& name,
                                                          std::size_t most);

}  // namespace lockflight::cluster
