// Bad usage: one line that names the argument, its value and what is accepted.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tool/command.hpp"

namespace lockflight::tool {

/// The program prints what() as one line and exits with 2.
struct usage_error : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

/// A user's value for a message: in quotes, without control characters, cut when it is long.
[[nodiscard]] std::string shown(std::string_view value);

/// "--procs '0' (accepted: …)".
[[nodiscard]] usage_error refuse(std::string_view argument, std::string_view value,
                                 std::string_view accepted);

/// The same for an option that was given, with its value or, as a switch, without.
[[nodiscard]] usage_error refuse(const arguments& given, const std::string& option,
                                 std::string_view accepted);

/// The same for a name that is not one of `known`; says which one is nearest.
[[nodiscard]] usage_error unknown_name(std::string_view argument, const std::string& value,
                                       const std::vector<std::string>& known);

}  // namespace lockflight::tool
