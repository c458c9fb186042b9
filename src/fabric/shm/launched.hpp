// What the fabrics have in common whose ranks come together in a launch over hosts: what all ranks
// say, and whether a run's machine fits the launch.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lockflight/fabric/shm.hpp"
#include "lockflight/rma/topology.hpp"

namespace lockflight::fabric::detail {

/// Each rank's text, by rank. Collective, as the functions are that call it.
using gather_texts = std::function<std::vector<std::string>(const std::string&)>;

/// Whether it is true on every rank.
[[nodiscard]] bool all_hold(const gather_texts& gather, bool mine);
/// Rank 0's value.
[[nodiscard]] double first_of(const gather_texts& gather, double mine);
/// The least of all ranks' values.
[[nodiscard]] double least_of(const gather_texts& gather, double mine);

// `first_of_host[r]` is the lowest rank on rank r's host, for each rank of the launch.

/// Throws std::invalid_argument unless the launch has such a machine.
void require_machine(const rma::topology& machine, const std::vector<int>& first_of_host);
[[nodiscard]] bool on_one_host(const std::vector<int>& first_of_host, int ranks);
/// How ranks wait, so many on a host of so many cores. Throws std::invalid_argument on a bad word.
[[nodiscard]] shm::wait_policy policy_of(const std::string& waiting, int ranks_here, int cores);

}  // namespace lockflight::fabric::detail
