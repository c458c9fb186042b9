// What domains put into the lines of their errors.
#pragma once

#include <string>
#include <string_view>

namespace lockflight::detail {

/// The text without what would spoil a line, or a terminal.
[[nodiscard]] std::string in_a_line(std::string_view text);
/// "'jobs'": a name that may be of any length and contain anything.
[[nodiscard]] std::string shown(std::string_view name);
/// "0660".
[[nodiscard]] std::string mode_text(unsigned mode);

}  // namespace lockflight::detail
