// The fabrics on networks, which a build of the lab may have.
#pragma once

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

/// Null if there is no such network.
[[nodiscard]] const network_fabric* network_of(std::string_view name);

/// MPI first, then the wired networks of cmake/LockflightNetworks.cmake, then OpenSHMEM.
[[nodiscard]] std::vector<std::string> names_of_networks();

}  // namespace lockflight::bench
