#include "cli/program_of.hpp"

#include <utility>

#include "cli/commands.hpp"
#include "tool/parse.hpp"
#include "tool/usage.hpp"

namespace lockflight::cli {

std::string program_of(std::vector<std::string> words) {
  for (;;) {
    const std::string name = words.front().substr(words.front().rfind('/') + 1);
    if (name != lockflight_program().name) return name;
    std::vector<const char*> line;
    for (const std::string& word : words) line.push_back(word.c_str());
    try {
      std::vector<std::string> inner =
          tool::parse(lockflight_program(), static_cast<int>(line.size()), line.data())
              .given.all("COMMAND");
      if (inner.empty()) return name;
      words = std::move(inner);
    } catch (const tool::usage_error&) {  // which that run reports itself
      return name;
    }
  }
}

}  // namespace lockflight::cli
