#include "tool/completion/completion.hpp"

#include <algorithm>

#include "tool/completion/parts.hpp"

namespace lockflight::tool {

std::string shell_quoted(std::string_view text, std::string_view for_quote) {
  std::string out = "'";
  for (const char c : text)
    if (c == '\'')
      out += for_quote;
    else
      out += c;
  return out + "'";
}

std::vector<command> commands_of(const about& program) {
  std::vector<command> all;
  for (const entry& each : program.commands) all.push_back(made(each));
  return all;
}

std::string function_of(std::string_view program) {
  std::string name = "_" + std::string(program);
  std::ranges::replace(name, '-', '_');
  return name;
}

std::vector<std::string> names_passed_on(const about& program) {
  std::vector<std::string> names;
  for (const listing& each : program.passed_on) names.emplace_back(each.name);
  return names;
}

std::vector<option> offered_options(const command& c) {
  std::vector<option> all = c.options;
  all.push_back(help_option());
  return all;
}

const std::vector<std::string>& shells() {
  static const std::vector<std::string> known{"bash", "zsh", "fish"};
  return known;
}

std::string completion_script(const about& program, const std::string& shell) {
  if (shell == "bash") return bash_completion(program);
  if (shell == "zsh") return zsh_completion(program);
  return fish_completion(program);
}

}  // namespace lockflight::tool
