// Runs as claim files write them.
#pragma once

#include <string>

#include "lab/reproduce/claims.hpp"
#include "toml/strict.hpp"

namespace lockflight::reproduce {

/// A table of a claim file.
using reader = strict_toml::table<bad_claims>;

/// Reads the settings of a run, each of which may be missing. `name` is the table's, for errors.
/// The table may also have the key `besides`, which the caller reads.
[[nodiscard]] run run_of(const toml::table& table, const std::string& path, const std::string& name,
                         std::string_view besides = "");

/// Fills in the paper's machine. Refuses a run without what every run needs; `at` is where the
/// file has it, and `name` what it is called there.
void complete(run& what, const std::string& machine, const reader& in, const toml::node& at,
              const std::string& name);

/// A string that is one line of text.
[[nodiscard]] std::string line_of_text(reader& in, std::string_view key);
/// The same, which may be missing.
[[nodiscard]] std::string text_or_empty(reader& in, std::string_view key);

}  // namespace lockflight::reproduce
