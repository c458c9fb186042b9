// The program's output: standard output, with colours and a width if it is a terminal, and a line
// of progress on standard error if that is one.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace lockflight::cli {

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

/// A line on standard error that is overwritten. Does nothing where that is no terminal, nor in the
/// first moments, since the work may be done at once.
class progress_line {
 public:
  progress_line();
  ~progress_line() { clear(); }
  progress_line(const progress_line&) = delete;
  progress_line& operator=(const progress_line&) = delete;

  void show(std::string_view text);
  void clear();

  [[nodiscard]] double seconds() const;

 private:
  bool possible_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace lockflight::cli
