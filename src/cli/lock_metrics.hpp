// The locks of a domain as metrics, for Prometheus.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/named.hpp"

namespace lockflight::cli {

/// A domain has a million locks at most, and each has several metrics, so a file has these many
/// locks at most: those in use, and then those that were acquired most often. A further metric says
/// how many are left out.
constexpr std::size_t most_locks_with_metrics = 1'000;

/// The file for Prometheus' collector of text files: metrics of the domain, and of each of these
/// locks, which are on this host.
[[nodiscard]] std::string lock_metrics(const domain& in, std::vector<domain_lock> locks);

}  // namespace lockflight::cli
