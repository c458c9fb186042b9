// lockflight doctor's measurements from one host to another.
#pragma once

#include <vector>

#include "fabric/mpi/segment.hpp"

namespace lockflight::mpi::detail {

/// The findings for each host of `all`, measured one after the other, about a second each; the same
/// on all ranks. Empty on one host. `cells` are of `all`, with room for `words_probed`. Collective.
[[nodiscard]] std::vector<host_findings> probe_hosts(const communicator& all, const segment& cells);
constexpr std::uint32_t words_probed = 32;

}  // namespace lockflight::mpi::detail
