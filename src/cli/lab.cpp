#include "cli/lab.hpp"

#include <fmt/format.h>

#include <cstdio>

#include "tool/agent_command.hpp"
#include "tool/siblings.hpp"
#include "tool/tool.hpp"

namespace lockflight::cli {
namespace {

/// lockflight.mpich has a lab of its own, lockflight-lab.mpich.
tool::sibling the_lab() {
  return tool::sibling(std::string(lab_name) + tool::own_suffix("lockflight"));
}

}  // namespace

int become_lab(char* const* argv) {
  const std::string why = the_lab().become(argv);
  std::fputs(fmt::format("lockflight: this command is one of the lab, and {}\n", why).c_str(),
             stderr);
  return tool::environment_failed;
}

int become_agent(char* const* argv) {
  const std::string why = tool::sibling(tool::agent_program).become(argv);
  std::fputs(fmt::format("lockflight: agents are a program of their own, and {}\n", why).c_str(),
             stderr);
  return tool::environment_failed;
}

int become_lab(std::vector<std::string> words) {
  std::string name = "lockflight";
  std::vector<char*> argv{name.data()};
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  return become_lab(argv.data());
}

void run_lab(const std::vector<std::string>& words) {
  // The rest of the output is of use also if there is no lab, or if it fails.
  static_cast<void>(the_lab().run(words));
}

}  // namespace lockflight::cli
