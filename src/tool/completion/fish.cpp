#include <fmt/format.h>

#include "tool/completion/parts.hpp"
#include "tool/text.hpp"

namespace lockflight::tool {
namespace {

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

}  // namespace

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

}  // namespace lockflight::tool
