// The findings of a trial of a network, as `lockflight doctor` makes it.
#pragma once

#include <string>
#include <vector>

#include "lockflight/rma/cxx20.hpp"

namespace lockflight::fabric {

/// Operations on the memory of a host's first rank from another host.
struct host_findings {
  std::string name;
  int ranks = 0;
  int cores = 0;
  // To a rank that waits; medians.
  double put_us = 0;
  double get_us = 0;
  double fetch_add_us = 0;
  double compare_swap_us = 0;
  double computing_us = 0;  ///< the longest fetch-add to a rank that computes for `computed_us`
  double computed_us = 0;

  /// True if operations end without the help of their target's process.
  [[nodiscard]] bool direct() const { return computing_us < computed_us / 2; }
};

/// The findings that the trials of all networks have.
struct findings {
  std::string library;  ///< the name and the version, as the library says them
  int ranks = 0;
  int hosts_count = 0;
  int cores = 0;  ///< of rank 0's host, for this launch
  bool fetch_add_atomic = false;
  bool compare_swap_atomic = false;
  std::vector<host_findings> hosts{};  ///< empty on one host
};

}  // namespace lockflight::fabric
