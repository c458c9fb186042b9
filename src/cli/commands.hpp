// The commands of lockflight. A new one is a file here and a line in commands.cpp.
#pragma once

#include "tool/command.hpp"
#include "tool/console.hpp"
#include "tool/tool.hpp"

namespace lockflight::cli {

using namespace tool;

/// lockflight, with its commands and those of the lab.
[[nodiscard]] const about& lockflight_program();

// Each file has one of these functions.
[[nodiscard]] command run_command();
[[nodiscard]] command who_command();
[[nodiscard]] command leader_command();
[[nodiscard]] command done_command();
[[nodiscard]] command break_command();
[[nodiscard]] command hold_command();
[[nodiscard]] command release_command();
[[nodiscard]] command units_command();
[[nodiscard]] command top_command();
[[nodiscard]] command domain_command();
[[nodiscard]] command locks_command();
[[nodiscard]] command topo_command();

}  // namespace lockflight::cli
