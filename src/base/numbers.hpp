// Several numbers in text: "0,3".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/joined.hpp"
#include "base/number.hpp"

namespace lockflight {

/// "0,3", or with another separator "0, 3".
[[nodiscard]] inline std::string numbers_text(const std::vector<int>& numbers,
                                              std::string_view separator = ",") {
  std::vector<std::string> texts;
  for (const int each : numbers) texts.push_back(std::to_string(each));
  return joined(texts, separator);
}

/// The numbers that the whole text is, separated by commas. None if a part of it is no number.
[[nodiscard]] inline std::optional<std::vector<int>> read_numbers(std::string_view text) {
  std::vector<int> numbers;
  while (true) {
    const std::size_t end = text.find(',');
    const auto number = read_number<int>(text.substr(0, end));
    if (!number) return std::nullopt;
    numbers.push_back(*number);
    if (end == std::string_view::npos) return numbers;
    text.remove_prefix(end + 1);
  }
}

}  // namespace lockflight
