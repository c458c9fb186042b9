// The fabric that a command line names, before it is parsed: the program that has this fabric has
// to join its launch before it can report an error in the line once for all ranks.
#pragma once

#include <string_view>

namespace lockflight::lab {

/// The value of --fabric; empty if it is not given. Parsing reports other errors in the line.
[[nodiscard]] inline std::string_view named_fabric(int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    constexpr std::string_view option = "--fabric";
    const std::string_view word(argv[i]);
    if (word == option && i + 1 < argc) return argv[i + 1];
    if (word.starts_with("--fabric=")) return word.substr(option.size() + 1);
  }
  return {};
}

}  // namespace lockflight::lab
