// The commands that explain a program. Both programs have them.
#pragma once

#include "tool/tool.hpp"

namespace lockflight::tool {

inline constexpr listing help_listing{"help", "explain a command"};
inline constexpr listing completion_listing{"completion",
                                            "print a completion script for bash, zsh or fish"};
inline constexpr listing man_listing{"man", "print the manual page"};

/// The program of each has to exist as long as the command.
[[nodiscard]] command help_command(const about& program);
[[nodiscard]] command completion_command(const about& program);
[[nodiscard]] command man_command(const about& program);

/// The value of SHELL. Throws usage_error.
[[nodiscard]] std::string shell_of(const arguments& given);

}  // namespace lockflight::tool
