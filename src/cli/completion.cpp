// lockflight completion: scripts for shells to complete commands, options and names.
#include <fmt/format.h>

#include <algorithm>

#include "cli/command.hpp"
#include "cli/console.hpp"
#include "cli/text.hpp"
#include "cli/usage.hpp"

namespace lockflight::cli {
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

constexpr std::string_view bash_head =
    R"(# bash completion for lockflight. Made by 'lockflight completion bash'.

# Completes the word after the last comma of a list.
_lockflight_list() {
  local before=''
  [[ $cur != *,* ]] || before="${cur%,*},"
  mapfile -t COMPREPLY < <(compgen -P "$before" -W "$1" -- "${cur##*,}")
  compopt -o nospace
}

_lockflight() {
  local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}"
  # Bash splits --option=value into three words.
  if [[ $cur == = ]]; then cur=''; elif [[ $prev == = ]]; then prev="${COMP_WORDS[COMP_CWORD-2]}"; fi
  local command='' word
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    [[ $word == -* ]] || { command="$word"; break; }
  done
  COMPREPLY=()
  # What follows -- is another command, and its arguments.
  if [[ $command == run && " ${COMP_WORDS[*]:1:COMP_CWORD-1} " == *' -- '* ]]; then
    compopt -o filenames
    [[ $prev == -- ]] && mapfile -t COMPREPLY < <(compgen -c -- "$cur")
    mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$cur")
    return
  fi
  case "$command $prev" in
)";

constexpr std::string_view bash_tail = R"(  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}

complete -F _lockflight lockflight
)";

/// Prints the domains that exist when the user completes.
constexpr std::string_view list_domains = "lockflight domain list --names 2>/dev/null";

constexpr std::string_view bash_files =
    R"(compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur"))";

std::string bash_value(const option& o) {
  switch (o.completes) {
    case option::offer::files:
      return std::string(bash_files);
    case option::offer::list_of_words:
      return fmt::format("_lockflight_list {}", shell_quoted(joined(o.known, " ")));
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
std::string bash_cases() {
  std::vector<std::string> free_text;
  std::string out;
  for (const command& c : commands())
    for (const option& o : c.options) {
      if (o.value.empty()) continue;
      std::string label = fmt::format("'{} {}'", c.name, o.name);
      if (!o.shorthand.empty()) label += fmt::format(" | '{} {}'", c.name, o.shorthand);
      if (o.completes == option::offer::nothing)
        free_text.push_back(label);
      else
        out += fmt::format("    {})\n      {}\n      return\n      ;;\n", label, bash_value(o));
    }
  return out + fmt::format("    {})\n      return\n      ;;\n", joined(free_text, " | \\\n      "));
}

std::string bash_completion() {
  std::string out = std::string(bash_head) + bash_cases();
  out += "  esac\n  local words=''\n  case \"$command\" in\n";
  out += fmt::format("    '') words='{} {} {}' ;;\n", joined(command_names(), " "),
                     help_option().name, version_option().name);
  for (const command& c : commands()) {
    std::vector<std::string> offers = flags_of(c);
    bool files = false;
    bool domains = false;
    for (const option& o : c.options) {
      if (!o.positional()) continue;
      offers.insert(offers.end(), o.known.begin(), o.known.end());
      domains = domains || o.completes == option::offer::domains;
      files = files || o.completes == option::offer::files;
    }
    out += fmt::format("    {})\n      words='{}'\n", c.name, joined(offers, " "));
    if (domains) out += fmt::format("      words+=\" $({})\"\n", list_domains);
    if (files)
      out += fmt::format("      [[ $cur == -* ]] || {{\n        {}\n        return\n      }}\n",
                         bash_files);
    out += "      ;;\n";
  }
  return out + std::string(bash_tail);
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

std::string zsh_completion() {
  std::string out =
      "#compdef lockflight\n"
      "# zsh completion for lockflight. Made by 'lockflight completion zsh'.\n\n"
      "_lockflight() {\n"
      "  local -a known_commands=(\n";
  for (const command& c : commands())
    out += fmt::format("    {}\n", shell_quoted(zsh_escaped(c.name) + ":" + c.summary));
  out += fmt::format(
      "  )\n"
      "  if ((CURRENT == 2)); then\n"
      "    _describe command known_commands\n"
      "    _arguments {} {}\n"
      "    return\n"
      "  fi\n"
      "  local command=$words[2]\n"
      "  shift words\n"
      "  ((CURRENT--))\n"
      "  case $command in\n",
      zsh_spec(help_option()), zsh_spec(version_option()));
  for (const command& c : commands()) {
    // -S: after -- comes no option.
    out += fmt::format("    {})\n      _arguments -S", c.name);
    for (const option& o : offered_options(c)) out += fmt::format(" \\\n        {}", zsh_spec(o));
    out += "\n      ;;\n";
  }
  return out +
         "  esac\n"
         "}\n\n"
         "if [[ $funcstack[1] == _lockflight ]]; then\n"
         "  _lockflight \"$@\"\n"
         "else\n"
         "  compdef _lockflight lockflight\n"
         "fi\n";
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

std::string fish_option(const command& c, const option& o) {
  std::string out =
      fmt::format("complete -c lockflight -n '__fish_seen_subcommand_from {}'", c.name);
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

std::string fish_completion() {
  std::string out =
      "# fish completion for lockflight. Made by 'lockflight completion fish'.\n\n"
      "complete -c lockflight -f\n";
  for (const option& o : {help_option(), version_option()})
    out += fmt::format("complete -c lockflight -n '__fish_use_subcommand' -l {} -d {}\n",
                       o.name.substr(2), fish_quoted(o.what));
  for (const command& c : commands())
    out += fmt::format("complete -c lockflight -n '__fish_use_subcommand' -a {} -d {}\n", c.name,
                       fish_quoted(c.summary));
  for (const command& c : commands())
    for (const option& o : offered_options(c)) out += fish_option(c, o);
  return out;
}

const std::vector<std::string>& shells() {
  static const std::vector<std::string> known{"bash", "zsh", "fish"};
  return known;
}

int run_completion(const arguments& given, console& out) {
  const auto shell = given.one("SHELL");
  if (!shell) throw refuse("SHELL", "", joined(shells()));
  if (*shell == "bash")
    out.print(bash_completion());
  else if (*shell == "zsh")
    out.print(zsh_completion());
  else if (*shell == "fish")
    out.print(fish_completion());
  else
    throw unknown_name("SHELL", *shell, shells());
  return 0;
}

}  // namespace

command completion_command() {
  return {
      .name = "completion",
      .summary = "print a completion script for bash, zsh or fish",
      .description = {"Prints a script that makes the shell complete commands, options and the "
                      "names of locks, workloads and parameters. An installation brings them."},
      .options = {{.name = "SHELL",
                   .what = "bash, zsh or fish",
                   .completes = option::offer::words,
                   .known = shells()}},
      .examples = {{"source <(lockflight completion bash)", "complete in this shell"},
                   {"lockflight completion fish > ~/.config/fish/completions/lockflight.fish",
                    "complete in every fish"}},
      .run = run_completion,
  };
}

}  // namespace lockflight::cli
