#include "tool/console.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <system_error>

namespace lockflight::tool {
namespace {

std::string_view variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

std::string_view escape_of(style s) {
  switch (s) {
    case style::heading:
      return "\033[1m";
    case style::good:
      return "\033[32m";
    case style::bad:
      return "\033[1;31m";
    case style::faint:
      return "\033[2m";
    case style::plain:
      break;
  }
  return "";
}

}  // namespace

bool obeys_escapes(int fd) { return isatty(fd) != 0 && variable("TERM") != "dumb"; }

int terminal_width(int fd) {
  const std::string_view columns = variable("COLUMNS");
  int width = 0;
  if (std::from_chars(columns.data(), columns.data() + columns.size(), width).ec == std::errc() &&
      width > 0)
    return width;
  winsize size{};
  return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

console::console() : colours_(obeys_escapes(STDOUT_FILENO) && variable("NO_COLOR").empty()) {
  if (isatty(STDOUT_FILENO) != 0) width_ = terminal_width(STDOUT_FILENO);
}

std::string console::paint(style s, std::string_view text) const {
  if (!colours_ || s == style::plain || text.empty()) return std::string(text);
  return std::string(escape_of(s)).append(text).append("\033[0m");
}

// Failures show in finish(): the stream remembers them.
void console::print(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

void console::line(std::string_view text) {
  print(text);
  print("\n");
}

void console::finish() {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return;
  throw std::system_error(errno == 0 ? EIO : errno, std::generic_category(),
                          "standard output cannot be written");
}

}  // namespace lockflight::tool
