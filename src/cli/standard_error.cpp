#include "cli/standard_error.hpp"

#include <unistd.h>

#include "base/visible_text.hpp"
#include "base/write_within.hpp"

namespace lockflight::cli {

namespace {
const char* speaker = "run";
}  // namespace

void speak_as(const char* command) { speaker = command; }

bool takes_a_line() { return takes_text(STDERR_FILENO, std::chrono::milliseconds(0)); }

bool write_within(int to, std::string_view text, std::chrono::milliseconds within) {
  return lockflight::write_within(to, text, within) == text.size();
}

void say(const std::string& line) {
  constexpr std::chrono::milliseconds for_a_reader{100};
  write_within(STDERR_FILENO, "lockflight " + std::string(speaker) + ": " + visible(line) + "\n",
               for_a_reader);
}

}  // namespace lockflight::cli
