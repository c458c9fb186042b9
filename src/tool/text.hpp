// Small functions on text. Every character that the program prints takes one column.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/joined.hpp"

namespace lockflight::tool {

/// How many columns text takes.
[[nodiscard]] int columns_of(std::string_view utf8);

/// Breaks a paragraph into lines of at most `width` columns, each indented. Ends with a new line.
[[nodiscard]] std::string wrapped(std::string_view text, int width, int indent);

struct labelled {
  std::string label;
  std::string what;
};

/// Labels, and beside them their meanings. A long label has a line of its own.
[[nodiscard]] std::string two_columns(const std::vector<labelled>& rows, int width, int indent);

/// "0-3, 8": numbers in order, neighbours as a range.
[[nodiscard]] std::string ranges(const std::vector<int>& numbers);

/// "1 rank", "2 ranks".
[[nodiscard]] std::string counted(std::size_t n, std::string_view one);

/// Three significant digits.
[[nodiscard]] std::string rounded(double value);

/// The same with k, M or G.
[[nodiscard]] std::string scaled(double value);

}  // namespace lockflight::tool
