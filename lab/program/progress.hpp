// A line of progress on standard error, if that is a terminal.
#pragma once

#include <chrono>
#include <string_view>

namespace lockflight::lab {

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

}  // namespace lockflight::lab
