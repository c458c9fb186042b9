// Help as text, made from the same facts as parsing.
#pragma once

#include <string>

#include "tool/command.hpp"
#include "tool/tool.hpp"

namespace lockflight::tool {

/// `lockflight --help`.
[[nodiscard]] std::string program_help(const about& program);

/// `lockflight COMMAND --help`.
[[nodiscard]] std::string command_help(const command& of);

/// "lockflight report [OPTIONS] FILE.json".
[[nodiscard]] std::string synopsis(const command& of);

/// "-o, --output FILE".
[[nodiscard]] std::string heading_of(const option& o);

}  // namespace lockflight::tool
