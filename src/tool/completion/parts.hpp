// The common parts of the scripts for the shells.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tool/tool.hpp"

namespace lockflight::tool {

// Each file has one of these functions.
[[nodiscard]] std::string bash_completion(const about& program);
[[nodiscard]] std::string zsh_completion(const about& program);
[[nodiscard]] std::string fish_completion(const about& program);

/// Prints the domains that exist when the user completes.
inline constexpr std::string_view list_domains = "lockflight domain list --names 2>/dev/null";

/// A shell's single quotes around text that may hold one. Fish escapes inside quotes, others close
/// them for a moment.
[[nodiscard]] std::string shell_quoted(std::string_view text, std::string_view for_quote = "'\\''");

[[nodiscard]] std::vector<command> commands_of(const about& program);

/// The name of the shell function that completes a program: "_lockflight_lab".
[[nodiscard]] std::string function_of(std::string_view program);

[[nodiscard]] std::vector<std::string> names_passed_on(const about& program);

/// The options of a command, --help included.
[[nodiscard]] std::vector<option> offered_options(const command& c);

}  // namespace lockflight::tool
