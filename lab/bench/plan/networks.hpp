// The fabrics on networks, which a build of the lab may have.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace lockflight::bench {

struct network_fabric {
  std::string_view name;
  std::string_view where;  ///< which builds have it
  /// True if the usual lab becomes the lab that has this fabric. It does not for MPI: a build may
  /// have two MPIs, and only the lab of the launcher's own MPI can join its launch.
  bool serves_usual_lab = true;
};

inline constexpr std::array networks{
    network_fabric{"mpi", "in build/openmpi/lockflight and build/mpich/lockflight", false},
    network_fabric{"ucx", "in a whole build where libucx is installed"},
    network_fabric{"libfabric", "in a whole build where libfabric is installed"},
    network_fabric{"oshmem", "in a whole build where OpenSHMEM's oshcc is installed"},
};

/// Null if there is no such network.
[[nodiscard]] constexpr const network_fabric* network_of(std::string_view name) {
  const auto* const found = std::ranges::find(networks, name, &network_fabric::name);
  return found == networks.end() ? nullptr : found;
}

[[nodiscard]] inline std::vector<std::string> names_of_networks() {
  std::vector<std::string> names;
  for (const network_fabric& each : networks) names.emplace_back(each.name);
  return names;
}

}  // namespace lockflight::bench
