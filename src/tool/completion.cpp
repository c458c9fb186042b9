#include "tool/completion.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tool/text.hpp"

namespace lockflight::tool {
namespace {

/// A shell's single quotes around text that may hold one. Fish escapes inside quotes, others close
/// them for a moment.
std::string shell_quoted(std::string_view text, std::string_view for_quote = "'\\''") {
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

/// The name of the shell function that completes a program: "_lockflight_lab".
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

/// The flags that complete before and after a command.
std::vector<std::string> flags_of(const command& c) {
  std::vector<std::string> flags;
  for (const option& o : offered_options(c))
    if (!o.positional()) flags.push_back(o.name);
  return flags;
}

// ---- bash ----

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

/// Prints the domains that exist when the user completes.
constexpr std::string_view list_domains = "lockflight domain list --names 2>/dev/null";

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

// ---- zsh ----

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

// ---- fish ----

std::string fish_quoted(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\') escaped += '\\';
    escaped += c;
  }
  return shell_quoted(escaped, "\\'");
}

std::string fish_option(const about& program, const command& c, const option& o) {
  std::string out =
      fmt::format("complete -c {} -n '__fish_seen_subcommand_from {}'", program.name, c.name);
  if (!o.positional()) out += fmt::format(" -l {}", o.name.substr(2));
  if (!o.shorthand.empty()) out += fmt::format(" -s {}", o.shorthand.substr(1));
  const std::string known = joined(o.known, " ");
  if (o.completes == option::offer::files)
    out += o.positional() ? " -F" : " -r -F";
  else if (!o.value.empty())
    out += " -x";
  if (o.completes == option::offer::list_of_words)
    out += fmt::format(" -a {}", fish_quoted(fmt::format("(__fish_append , {})", known)));
  else if (o.completes == option::offer::words)
    out += fmt::format(" -a {}", fish_quoted(known));
  else if (o.completes == option::offer::domains)
    out += fmt::format(" -a {}", fish_quoted(fmt::format("({})", list_domains)));
  else if (o.completes == option::offer::a_command)
    out += " -a '(__fish_complete_command)' -F";
  return out + fmt::format(" -d {}\n", fish_quoted(o.what));
}

/// {0} is the function of the program, {1} the other program, {2} the program, {3} the commands.
constexpr std::string_view fish_other_program = R"fish(
# What fish offers for the same line of the other program.
function {0}_passed_on
  set -l words (commandline -opc) (commandline -ct)
  complete -C "{1} $(string join ' ' -- (string escape -n -- $words[2..-2]) $words[-1])"
end
complete -c {2} -n '__fish_seen_subcommand_from {3}' -a '({0}_passed_on)'
)fish";

std::string fish_completion(const about& program) {
  std::string out = fmt::format(
      "# fish completion for {0}. Made by '{0} completion fish'.\n\n"
      "complete -c {0} -f\n",
      program.name);
  for (const option& o : {help_option(), version_option()})
    out += fmt::format("complete -c {} -n '__fish_use_subcommand' -l {} -d {}\n", program.name,
                       o.name.substr(2), fish_quoted(o.what));
  const auto add_command = [&](const listing& is) {
    out += fmt::format("complete -c {} -n '__fish_use_subcommand' -a {} -d {}\n", program.name,
                       is.name, fish_quoted(is.summary));
  };
  for (const entry& each : program.commands) add_command(each.is);
  for (const listing& each : program.passed_on) add_command(each);
  for (const command& c : commands_of(program))
    for (const option& o : offered_options(c)) out += fish_option(program, c, o);
  if (!program.passed_on.empty())
    out += fmt::format(fish_other_program, function_of(program.name), program.passed_on_to,
                       program.name, joined(names_passed_on(program), " "));
  return out;
}

}  // namespace

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
