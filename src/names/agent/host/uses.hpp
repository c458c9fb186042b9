// The uses of the domain's locks on this host, for agents of other hosts that ask.
#pragma once

#include <string>
#include <vector>

#include "lockflight/domain.hpp"

namespace lockflight::cluster {

/// The users on this host of that lock, or with an empty name of all locks: the holders of all
/// locks, and then the waiters, so that holders are there if not all are. At most `most` users.
[[nodiscard]] std::vector<domain_lock> uses_here(const domain& in, const std::string& host,
                                                 const std::string& name, std::size_t most);

}  // namespace lockflight::cluster
