// Scripts with which shells complete commands, options and names, made from the same facts as
// parsing.
#pragma once

#include <string>
#include <vector>

#include "tool/tool.hpp"

namespace lockflight::tool {

/// The shells that have one.
[[nodiscard]] const std::vector<std::string>& shells();

/// The script of a program for one of the shells. What it passes on is completed by the function of
/// the other program's script, where the shell has that function.
[[nodiscard]] std::string completion_script(const about& program, const std::string& shell);

}  // namespace lockflight::tool
