// A user's value in a message.
#pragma once

#include <string>
#include <string_view>

namespace lockflight::catalogue {

/// In quotes; cut when it is long, where a character begins: half of one would garble the line.
[[nodiscard]] inline std::string quoted(std::string_view value) {
  constexpr std::size_t longest = 80;
  if (value.size() <= longest) return "'" + std::string(value) + "'";
  std::size_t end = longest;
  while (end > 0 && (static_cast<unsigned char>(value[end]) & 0xc0) == 0x80) --end;
  return "'" + std::string(value.substr(0, end)) + "…'";
}

}  // namespace lockflight::catalogue
