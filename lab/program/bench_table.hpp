// A bench's results as a table for people.
#pragma once

#include <nlohmann/json.hpp>

#include "lab/program/commands.hpp"

namespace lockflight::lab {

/// Prints a row for each run, in groups of comparable runs. Settings that are the same in all runs
/// are shown once, above.
void print_bench(console& out, const nlohmann::json& bench);

/// How often the runs saw mutual exclusion broken, as a sentence; empty if never.
[[nodiscard]] std::string violations_in(const nlohmann::json& bench);

}  // namespace lockflight::lab
