// Texts for the lines of domains' errors.
#pragma once

#include <array>
#include <cstdio>
#include <string>
#include <string_view>

#include "base/visible_text.hpp"

namespace lockflight::detail {

/// "'jobs'": a name that may be of any length and contain anything.
[[nodiscard]] inline std::string shown(std::string_view name) { return in_quotes(name); }

/// "0660".
[[nodiscard]] inline std::string mode_text(unsigned mode) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "%04o", mode);
  return text.data();
}

}  // namespace lockflight::detail
