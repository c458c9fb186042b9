// Several pieces of text as one.
#pragma once

#include <string>
#include <string_view>

namespace lockflight {

/// "a, b, c".
[[nodiscard]] std::string joined(const auto& words, std::string_view separator = ", ") {
  std::string text;
  bool is_first = true;
  for (const auto& word : words) {
    if (!is_first) text += separator;
    is_first = false;
    text += word;
  }
  return text;
}

}  // namespace lockflight
