#include "lab/bench/plan/networks.hpp"

#include <algorithm>
#include <array>

namespace lockflight::bench {

namespace {

constexpr std::array networks{
    network_fabric{"mpi", "in build/openmpi/lockflight and build/mpich/lockflight", false},
#include "wired_networks.inc"  // a row for each network of cmake/LockflightNetworks.cmake
    network_fabric{"oshmem", "in a whole build where OpenSHMEM's oshcc is installed"},
};

}  // namespace

const network_fabric* network_of(std::string_view name) {
  const auto* const found = std::ranges::find(networks, name, &network_fabric::name);
  return found == networks.end() ? nullptr : found;
}

std::vector<std::string> names_of_networks() {
  std::vector<std::string> names;
  for (const network_fabric& each : networks) names.emplace_back(each.name);
  return names;
}

}  // namespace lockflight::bench
