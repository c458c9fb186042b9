// The units of a semaphore, as options give them.
#pragma once

#include <string>

#include "lockflight/domain.hpp"

namespace lockflight::cli {

/// For help: "8", "0,1,3", or "3," for one unit with that number.
inline constexpr const char* units_value = "N|LIST";

/// The units of "8" or of "0,1,3". Throws usage_error, which names the option.
[[nodiscard]] units units_from(const std::string& option, const std::string& text);
/// The number of units that a run takes, from "2". Throws usage_error.
[[nodiscard]] int take_from(const std::string& option, const std::string& text, const units& of);
/// The number of these units.
[[nodiscard]] int count_of(const units& of);

}  // namespace lockflight::cli
