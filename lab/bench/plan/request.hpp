// From a request to runs that can be carried out.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lab/bench/bench.hpp"
#include "lab/bench/entry/entry.hpp"
#include "lab/bench/workload/plan.hpp"

namespace lockflight::bench {

/// A run: a lock and a plan.
struct job {
  const lock_entry* lock = nullptr;
  run_plan plan;
};

/// Every lock at every number of ranks, locks outermost. Throws bad_request.
[[nodiscard]] std::vector<job> jobs_of(const request& what);

/// Throws no_room unless this machine has the memory for a run.
void check_memory(const job& what);

/// The machine that a number of ranks runs on.
[[nodiscard]] rma::topology machine_of(const request& what, int procs);

/// "2x4" for a balanced tree, else "irregular".
[[nodiscard]] std::string levels_of(const rma::topology& machine);

/// The fabrics of this build.
[[nodiscard]] const std::vector<std::string>& fabrics();

[[nodiscard]] std::optional<workload> workload_of(const std::string& name);

}  // namespace lockflight::bench
