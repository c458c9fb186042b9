#include <fmt/format.h>

#include "tool/completion/parts.hpp"
#include "tool/text.hpp"

namespace lockflight::tool {
namespace {

/// In a spec of _arguments brackets and colons have a meaning.
std::string zsh_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string zsh_action(const option& o) {
  switch (o.completes) {
    case option::offer::files:
      return "_files";
    case option::offer::list_of_words:
      return fmt::format("_values -s , name {}", joined(o.known, " "));
    case option::offer::words:
      return fmt::format("({})", joined(o.known, " "));
    case option::offer::domains:
      return fmt::format("(${{(f)\"$({})\"}})", list_domains);
    case option::offer::a_command:
      return "_normal";
    case option::offer::nothing:
      break;
  }
  return " ";
}

std::string zsh_spec(const option& o) {
  const std::string what = zsh_escaped(o.what);
  if (o.positional())
    return shell_quoted(fmt::format("{}:{}:{}",
                                    o.completes == option::offer::a_command ? "*::" : "",
                                    zsh_escaped(o.name), zsh_action(o)));
  const std::string value =
      o.value.empty() ? "" : fmt::format(":{}:{}", zsh_escaped(o.value), zsh_action(o));
  const std::string repeats = o.repeats ? "*" : "";
  // With =, the value may be the next word or follow a =.
  std::string out = shell_quoted(
      fmt::format("{}{}{}[{}]{}", repeats, o.name, o.value.empty() ? "" : "=", what, value));
  if (!o.shorthand.empty())
    out += " " + shell_quoted(fmt::format("{}{}[{}]{}", repeats, o.shorthand, what, value));
  return out;
}

/// A command and its summary, as _describe shows them.
std::string zsh_line(const listing& is) {
  return fmt::format("    {}\n", shell_quoted(fmt::format("{}:{}", is.name, is.summary)));
}

/// {0} is the program, {1} its function.
constexpr std::string_view zsh_tail =
    R"(  esac
}}

# An autoloaded function begins with its file.
if [[ $funcstack[1] == {1} ]]; then
  {1} "$@"
else
  compdef {1} {0}
fi
)";

}  // namespace

std::string zsh_completion(const about& program) {
  const std::string function = function_of(program.name);
  std::string out = fmt::format(
      "#compdef {0}\n"
      "# zsh completion for {0}. Made by '{0} completion zsh'.\n\n"
      "{1}() {{\n"
      "  local -a known_commands=(\n",
      program.name, function);
  for (const entry& each : program.commands) out += zsh_line(each.is);
  for (const listing& each : program.passed_on) out += zsh_line(each);
  out += fmt::format(
      "  )\n"
      "  if ((CURRENT == 2)); then\n"
      "    _describe command known_commands\n"
      "    _arguments {} {}\n"
      "    return\n"
      "  fi\n",
      zsh_spec(help_option()), zsh_spec(version_option()));
  if (!program.passed_on.empty())
    out += fmt::format(
        "  case $words[2] in\n"
        "    {0})\n"
        "      (( ! $+functions[{1}] )) || {1}\n"
        "      return\n"
        "      ;;\n"
        "  esac\n",
        joined(names_passed_on(program), "|"), function_of(program.passed_on_to));
  out +=
      "  local command=$words[2]\n"
      "  shift words\n"
      "  ((CURRENT--))\n"
      "  case $command in\n";
  for (const command& c : commands_of(program)) {
    // -S: after -- comes no option.
    out += fmt::format("    {})\n      _arguments -S", c.name);
    for (const option& o : offered_options(c)) out += fmt::format(" \\\n        {}", zsh_spec(o));
    out += "\n      ;;\n";
  }
  return out + fmt::format(zsh_tail, program.name, function);
}

}  // namespace lockflight::tool
