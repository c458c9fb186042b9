#include "cli/standard_error.hpp"

#include <unistd.h>

#include "base/visible_text.hpp"
#include "base/write_within.hpp"

namespace lockflight::cli {

bool takes_a_line() { return takes_text(STDERR_FILENO, std::chrono::milliseconds(0)); }

bool write_within(int to, std::string_view text, std::chrono::milliseconds within) {
  return lockflight::write_within(to, text, within) == text.size();
}

void say(const std::string& line, std::string_view command) {
  constexpr std::chrono::milliseconds for_a_reader{100};
  const std::string text = "lockflight " + std::string(command) + ": " + visible(line) + "\n";
  write_within(STDERR_FILENO, text, for_a_reader);
}

}  // namespace lockflight::cli
