#include "tool/table.hpp"

#include <algorithm>

#include "tool/text.hpp"

namespace lockflight::tool {
namespace {

constexpr int gap = 2;

/// A cell of a line; the last of a line is not filled up, and one that is wider than its column
/// moves the rest of its line.
std::string cell_text(const console& out, const table_cell& cell, const table_column& column,
                      int width, bool last) {
  const std::string fill(static_cast<std::size_t>(std::max(0, width - columns_of(cell.text))), ' ');
  const std::string text = out.paint(cell.look, cell.text);
  if (column.numeric) return fill + text;
  return last ? text : text + fill;
}

}  // namespace

std::vector<int> table::widths() const {
  std::vector<int> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    int widest = 0;
    for (const auto& row : rows_)
      if (!row.empty()) widest = std::max(widest, columns_of(row[i].text));
    if (columns_[i].most > 0) widest = std::min(widest, columns_[i].most);
    widths.push_back(std::max(widest, columns_of(columns_[i].title)));
  }
  return widths;
}

std::vector<bool> table::fitting(const std::vector<int>& widths, int room) const {
  std::vector<bool> shown(columns_.size(), true);
  if (room == 0) return shown;
  int total = -gap;
  for (const int width : widths) total += width + gap;
  while (total > room) {
    std::size_t least = columns_.size();
    for (std::size_t i = 0; i < columns_.size(); ++i)
      if (shown[i] && columns_[i].importance > 0 &&
          (least == columns_.size() || columns_[i].importance < columns_[least].importance))
        least = i;
    if (least == columns_.size()) break;
    shown[least] = false;
    total -= widths[least] + gap;
  }
  return shown;
}

std::vector<std::string> table::print(console& out) const {
  const std::vector<int> width = widths();
  const std::vector<bool> shown = fitting(width, out.width());
  std::vector<std::size_t> visible;
  std::vector<std::string> left_out;
  for (std::size_t i = 0; i < columns_.size(); ++i)
    if (shown[i])
      visible.push_back(i);
    else
      left_out.push_back(columns_[i].title);
  const auto print_row = [&](const auto& cell_of) {
    std::string text;
    for (const std::size_t i : visible) {
      if (!text.empty()) text.append(gap, ' ');
      text += cell_text(out, cell_of(i), columns_[i], width[i], i == visible.back());
    }
    const std::size_t end = text.find_last_not_of(' ');
    out.line(std::string_view(text).substr(0, end + 1));  // npos + 1 is 0: nothing but spaces
  };
  print_row([&](std::size_t i) { return table_cell{columns_[i].title, style::heading}; });
  for (const auto& row : rows_)
    if (row.empty())
      out.line();
    else
      print_row([&](std::size_t i) { return row[i]; });
  return left_out;
}

}  // namespace lockflight::tool
