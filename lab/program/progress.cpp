#include "lab/program/progress.hpp"

#include <unistd.h>

#include <cstdio>
#include <string>

#include "lab/program/cleanup.hpp"
#include "tool/console.hpp"

namespace lockflight::lab {

progress_line::progress_line()
    : possible_(tool::obeys_escapes(STDERR_FILENO)), start_(std::chrono::steady_clock::now()) {}

void progress_line::show(std::string_view text) {
  constexpr double patience_s = 0.5;
  if (!possible_ || seconds() < patience_s) return;
  const auto width = static_cast<std::size_t>(tool::terminal_width(STDERR_FILENO));
  progress_is_shown(true);
  std::string out = "\r\033[K";
  out += text.substr(0, width - 1);
  std::fwrite(out.data(), 1, out.size(), stderr);
  std::fflush(stderr);
}

void progress_line::clear() {
  if (!progress_is_shown(false)) return;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
}

double progress_line::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

}  // namespace lockflight::lab
