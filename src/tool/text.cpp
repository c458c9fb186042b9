#include "tool/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace lockflight::tool {

int columns_of(std::string_view utf8) {
  const auto begins = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; };
  return static_cast<int>(std::count_if(utf8.begin(), utf8.end(), begins));
}

std::string wrapped(std::string_view text, int width, int indent) {
  std::string out;
  int column = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const int columns = columns_of(word);
    if (column != 0 && column + 1 + columns > width) {
      out += '\n';
      column = 0;
    }
    if (column == 0) {
      out.append(static_cast<std::size_t>(indent), ' ');
      column = indent;
    } else {
      out += ' ';
      ++column;
    }
    out += word;
    column += columns;
  }
  return out + '\n';
}

std::string two_columns(const std::vector<labelled>& rows, int width, int indent) {
  constexpr int widest_label = 26;
  int label_columns = 0;
  for (const labelled& r : rows)
    label_columns = std::max(label_columns, std::min(widest_label, columns_of(r.label)));
  const std::string before(static_cast<std::size_t>(indent), ' ');
  std::string out;
  for (const labelled& r : rows) {
    const std::string what = wrapped(r.what, width, indent + label_columns + 2);
    const int columns = columns_of(r.label);
    out += before + r.label;
    if (columns > label_columns)
      out += "\n" + what;
    else  // the label takes the place of so much of the first line's indent
      out += what.substr(static_cast<std::size_t>(indent + columns));
  }
  return out;
}

std::string ranges(const std::vector<int>& numbers) {
  std::string out;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    if (!out.empty()) out += ", ";
    out += std::to_string(numbers[i]);
    if (last > i) out += "-" + std::to_string(numbers[last]);
    i = last + 1;
  }
  return out;
}

std::string counted(std::size_t n, std::string_view one) {
  return fmt::format("{} {}{}", n, one, n == 1 ? "" : "s");
}

std::string rounded(double value) {
  if (value == 0) return "0";
  const double size = std::abs(value);
  return fmt::format("{:.{}f}", value, size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3);
}

std::string scaled(double value) {
  for (const auto& [unit, suffix] : {std::pair{1e9, "G"}, {1e6, "M"}, {1e3, "k"}})
    if (value >= 0.9995 * unit) return rounded(value / unit) + suffix;
  return rounded(value);
}

}  // namespace lockflight::tool
