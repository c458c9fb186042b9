// The manual page of a program, made from the same facts as --help.
#pragma once

#include <string>

#include "tool/tool.hpp"

namespace lockflight::tool {

/// In roff.
[[nodiscard]] std::string manual_page(const about& program);

}  // namespace lockflight::tool
