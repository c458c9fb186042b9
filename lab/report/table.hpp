// The table of all runs, as HTML that is readable without any script.
#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace lockflight::report {

/// The head row and the body rows of the table of `runs`, which must be valid. In each workload the
/// runs with the most ranks come first, and among those the fastest.
std::string table_head(const nlohmann::json& runs);
std::string table_body(const nlohmann::json& runs, const std::vector<std::string>& own_locks);

/// The columns whose titles a reader may not know, each with what it means: the entries of a list.
std::string table_terms();

[[nodiscard]] inline bool is_in(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace lockflight::report
