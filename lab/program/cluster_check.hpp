// lockflight check --cluster: simulates whole clusters, and checks each history.
#pragma once

#include "tool/command.hpp"
#include "tool/console.hpp"

namespace lockflight::lab {

/// Returns the exit code.
[[nodiscard]] int run_cluster_check(const tool::arguments& given, tool::console& out);

}  // namespace lockflight::lab
