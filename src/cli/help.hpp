// Help as text, made from the same facts as parsing.
#pragma once

#include <string>

#include "cli/command.hpp"

namespace lockflight::cli {

/// `lockflight --help`.
[[nodiscard]] std::string program_help();

/// `lockflight COMMAND --help`.
[[nodiscard]] std::string command_help(const command& of);

/// "lockflight report [OPTIONS] FILE.json".
[[nodiscard]] std::string synopsis(const command& of);

/// "-o, --output FILE".
[[nodiscard]] std::string heading_of(const option& o);

/// What the program is, in a sentence.
[[nodiscard]] std::string_view program_summary();

}  // namespace lockflight::cli
