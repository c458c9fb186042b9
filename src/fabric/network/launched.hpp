// Checks that a run's machine fits a launch over hosts, and how its ranks wait.
#pragma once

#include <string>
#include <vector>

#include "lockflight/fabric/shm.hpp"
#include "lockflight/rma/topology.hpp"

namespace lockflight::fabric::detail {

// `first_of_host[r]` is the lowest rank on rank r's host, for each rank of the launch.

/// Throws std::invalid_argument unless a launch of that size has so many ranks.
void require_ranks(int ranks, int size);
/// Throws std::invalid_argument unless the launch has such a machine.
void require_machine(const rma::topology& machine, const std::vector<int>& first_of_host);
[[nodiscard]] bool on_one_host(const std::vector<int>& first_of_host, int ranks);
/// The wait policy of so many ranks on a host of so many cores. Throws std::invalid_argument on a
/// bad word.
[[nodiscard]] shm::wait_policy policy_of(const std::string& waiting, int ranks_here, int cores);

}  // namespace lockflight::fabric::detail
