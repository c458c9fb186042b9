#include <fmt/format.h>

#include <algorithm>

#include "tool/completion/parts.hpp"
#include "tool/text.hpp"

namespace lockflight::tool {
namespace {

/// {0} is the program, {1} its function.
constexpr std::string_view bash_head =
    R"(# bash completion for {0}. Made by '{0} completion bash'.

# Completes the word after the last comma of a list.
{1}_list() {{
  local before=''
  [[ $cur != *,* ]] || before="${{cur%,*}},"
  mapfile -t COMPREPLY < <(compgen -P "$before" -W "$1" -- "${{cur##*,}}")
  compopt -o nospace
}}

{1}() {{
  local cur="${{COMP_WORDS[COMP_CWORD]}}" prev="${{COMP_WORDS[COMP_CWORD-1]}}"
  # Bash splits --option=value into three words.
  if [[ $cur == = ]]; then cur=''; elif [[ $prev == = ]]; then prev="${{COMP_WORDS[COMP_CWORD-2]}}"; fi
  local command='' word
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    [[ $word == -* ]] || {{ command="$word"; break; }}
  done
  COMPREPLY=()
)";

constexpr std::string_view bash_other_program =
    R"(  case "$command" in
    {0})
      ! declare -F {1} >/dev/null || {1}
      return
      ;;
  esac
)";

constexpr std::string_view bash_guarded_command =
    R"(  # What follows -- is another command, and its arguments.
  if [[ $command == {} && " ${{COMP_WORDS[*]:1:COMP_CWORD-1}} " == *' -- '* ]]; then
    compopt -o filenames
    [[ $prev == -- ]] && mapfile -t COMPREPLY < <(compgen -c -- "$cur")
    mapfile -t -O "${{#COMPREPLY[@]}}" COMPREPLY < <(compgen -f -- "$cur")
    return
  fi
)";

/// {0} is the function, {1} the program.
constexpr std::string_view bash_tail = R"(  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}}

complete -F {0} {1}
)";

constexpr std::string_view bash_files =
    R"(compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur"))";

std::string bash_value(const option& o, const std::string& function) {
  switch (o.completes) {
    case option::offer::files:
      return std::string(bash_files);
    case option::offer::list_of_words:
      return fmt::format("{}_list {}", function, shell_quoted(joined(o.known, " ")));
    case option::offer::words:
      return fmt::format("mapfile -t COMPREPLY < <(compgen -W {} -- \"$cur\"){}",
                         shell_quoted(joined(o.known, " ")),
                         o.known.front().ends_with('=') ? "; compopt -o nospace" : "");
    case option::offer::domains:
      return fmt::format("mapfile -t COMPREPLY < <(compgen -W \"$({})\" -- \"$cur\")",
                         list_domains);
    case option::offer::a_command:
    case option::offer::nothing:
      break;
  }
  return "";
}

/// The cases for the value of an option.
std::string bash_cases(const std::vector<command>& commands, const std::string& function) {
  std::vector<std::string> free_text;
  std::string out;
  for (const command& c : commands)
    for (const option& o : c.options) {
      if (o.value.empty()) continue;
      std::string label = fmt::format("'{} {}'", c.name, o.name);
      if (!o.shorthand.empty()) label += fmt::format(" | '{} {}'", c.name, o.shorthand);
      if (o.completes == option::offer::nothing)
        free_text.push_back(label);
      else
        out += fmt::format("    {})\n      {}\n      return\n      ;;\n", label,
                           bash_value(o, function));
    }
  return out + fmt::format("    {})\n      return\n      ;;\n", joined(free_text, " | \\\n      "));
}

/// The flags that complete before and after a command.
std::vector<std::string> flags_of(const command& c) {
  std::vector<std::string> flags;
  for (const option& o : offered_options(c))
    if (!o.positional()) flags.push_back(o.name);
  return flags;
}

/// The words that may follow a command.
std::string bash_words(const command& c) {
  std::vector<std::string> offers = flags_of(c);
  bool files = false;
  bool domains = false;
  for (const option& o : c.options) {
    if (!o.positional()) continue;
    offers.insert(offers.end(), o.known.begin(), o.known.end());
    domains = domains || o.completes == option::offer::domains;
    files = files || o.completes == option::offer::files;
  }
  std::string out = fmt::format("    {})\n      words='{}'\n", c.name, joined(offers, " "));
  if (domains) out += fmt::format("      words+=\" $({})\"\n", list_domains);
  if (files)
    out += fmt::format("      [[ $cur == -* ]] || {{\n        {}\n        return\n      }}\n",
                       bash_files);
  return out + "      ;;\n";
}

bool runs_a_command(const command& c) {
  return std::ranges::any_of(
      c.options, [](const option& o) { return o.completes == option::offer::a_command; });
}

}  // namespace

std::string bash_completion(const about& program) {
  const std::vector<command> commands = commands_of(program);
  const std::string function = function_of(program.name);
  std::string out = fmt::format(bash_head, program.name, function);
  if (!program.passed_on.empty())
    out += fmt::format(bash_other_program, joined(names_passed_on(program), " | "),
                       function_of(program.passed_on_to));
  for (const command& c : commands)
    if (runs_a_command(c)) out += fmt::format(bash_guarded_command, c.name);
  out += "  case \"$command $prev\" in\n" + bash_cases(commands, function);
  out += "  esac\n  local words=''\n  case \"$command\" in\n";
  out += fmt::format("    '') words='{} {} {}' ;;\n", joined(command_names(program), " "),
                     help_option().name, version_option().name);
  for (const command& c : commands) out += bash_words(c);
  return out + fmt::format(bash_tail, function, program.name);
}

}  // namespace lockflight::tool
