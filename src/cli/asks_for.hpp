// Which fabric a command line names, before it is parsed.
#pragma once

#include <string_view>

namespace lockflight::cli {

/// Whether the command line names the fabric. Parsing reports other errors in it. What follows "--"
/// is the line of another program.
[[nodiscard]] inline bool asks_for(std::string_view fabric, int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word(argv[i]);
    if (word == "--") return false;
    if (word == "--fabric" && i + 1 < argc && argv[i + 1] == fabric) return true;
    if (word.starts_with("--fabric=") && word.substr(9) == fabric) return true;
  }
  return false;
}

}  // namespace lockflight::cli
