// The commands of lockflight-lab. A new one is a file here, a line in commands.cpp and a line in
// tool/lab_commands.hpp.
#pragma once

#include "tool/command.hpp"
#include "tool/console.hpp"
#include "tool/tool.hpp"

namespace lockflight::lab {

using namespace tool;

[[nodiscard]] const about& lab_program();

/// Cleans up when it is interrupted; else as tool::run.
[[nodiscard]] int run_lab(int argc, const char* const* argv);

// Each file has one of these functions.
[[nodiscard]] command bench_command();
[[nodiscard]] command tune_command();
[[nodiscard]] command check_command();
[[nodiscard]] command reproduce_command();
[[nodiscard]] command grid_command();
[[nodiscard]] command report_command();
[[nodiscard]] command doctor_command();

}  // namespace lockflight::lab
