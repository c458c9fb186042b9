// The table of all runs, as HTML that is readable without any script.
#pragma once

#include <nlohmann/json.hpp>

#include <string>

namespace lockflight::report {

/// The head row and the body rows of the table; `runs` must be valid.
std::string table_head();
std::string table_body(const nlohmann::json& runs);

}  // namespace lockflight::report
