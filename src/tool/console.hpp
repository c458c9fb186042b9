// The program's output: standard output, with colours and a width if it is a terminal.
#pragma once

#include <string>
#include <string_view>

namespace lockflight::tool {

/// True if the file is a terminal that obeys escapes.
[[nodiscard]] bool obeys_escapes(int fd);
/// The columns of a terminal.
[[nodiscard]] int terminal_width(int fd);

enum class style { plain, heading, good, bad, faint };

class console {
 public:
  /// Reads the properties of the standard streams, NO_COLOR, TERM and COLUMNS.
  console();

  /// Columns of the terminal; 0 where standard output is not a terminal and lines have no limit.
  [[nodiscard]] int width() const { return width_; }
  [[nodiscard]] std::string paint(style s, std::string_view text) const;

  void print(std::string_view text);
  void line(std::string_view text = "");

  /// Throws std::system_error unless everything has reached standard output.
  void finish();

 private:
  bool colours_ = false;
  int width_ = 0;
};

}  // namespace lockflight::tool
