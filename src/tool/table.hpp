// Text in aligned columns.
#pragma once

#include <string>
#include <vector>

#include "tool/console.hpp"

namespace lockflight::tool {

struct table_cell {
  std::string text;
  style look = style::plain;
};

struct table_column {
  std::string title;
  bool numeric = true;  ///< aligned to the right
  /// On a narrow terminal the least important columns are dropped first; 0 never.
  int importance = 0;
  /// The column's largest width, also if a cell is wider: one long name does not pad all rows. 0:
  /// as wide as its widest cell.
  int most = 0;
};

class table {
 public:
  explicit table(std::vector<table_column> columns) : columns_(std::move(columns)) {}

  /// Adds a row, with a cell for each column.
  void add_row(std::vector<table_cell> row) { rows_.push_back(std::move(row)); }

  /// An empty line.
  void add_gap() { rows_.emplace_back(); }

  /// Returns the titles of the columns for which the terminal had no room.
  std::vector<std::string> print(console& out) const;

 private:
  [[nodiscard]] std::vector<int> widths() const;
  [[nodiscard]] std::vector<bool> fitting(const std::vector<int>& widths, int room) const;

  std::vector<table_column> columns_;
  std::vector<std::vector<table_cell>> rows_;
};

}  // namespace lockflight::tool
