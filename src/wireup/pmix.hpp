// A launcher that speaks PMIx: mpirun of Open MPI, prterun, srun --mpi=pmix.
#pragma once

#include <memory>

#include "wireup/group.hpp"

namespace lockflight::wireup {

/// True if the environment names such a launcher and this build can ask it.
[[nodiscard]] bool pmix_has_started_this();

/// Joins the ranks of the launcher's job. Throws launch_failed.
[[nodiscard]] std::unique_ptr<group> join_by_pmix();

}  // namespace lockflight::wireup
