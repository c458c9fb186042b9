#include "tool/documents.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tool/completion/completion.hpp"
#include "tool/console.hpp"
#include "tool/help.hpp"
#include "tool/man.hpp"
#include "tool/text.hpp"
#include "tool/usage.hpp"

namespace lockflight::tool {
namespace {

int run_help(const about& program, const arguments& given, console& out) {
  const auto name = given.one("COMMAND");
  if (!name) {
    out.print(program_help(program));
    return 0;
  }
  const entry* const known = find_command(program, *name);
  if (known == nullptr) throw unknown_name("COMMAND", *name, command_names(program));
  out.print(command_help(made(*known)));
  return 0;
}

}  // namespace

command help_command(const about& program) {
  return {
      .description = {"Explains a command, its arguments and its options. Without COMMAND it lists "
                      "the commands. COMMAND --help prints the same."},
      .options = {{.name = "COMMAND",
                   .what = "the command to explain",
                   .completes = option::offer::words,
                   .known = command_names(program),
                   .optional = true}},
      .examples = {{fmt::format("{} help {}", program.name, program.commands.front().is.name),
                    "explain one command"},
                   {fmt::format("{} help", program.name), "list the commands"}},
      .run = [&program](const arguments& given,
                        console& out) { return run_help(program, given, out); },
  };
}

std::string shell_of(const arguments& given) {
  const auto shell = given.one("SHELL");
  if (!shell) throw refuse("SHELL", "", joined(shells()));
  if (std::ranges::find(shells(), *shell) == shells().end())
    throw unknown_name("SHELL", *shell, shells());
  return *shell;
}

command completion_command(const about& program) {
  return {
      .description = {"Prints a script that makes the shell complete commands, options and the "
                      "names of their values, such as locks. An installation brings the scripts."},
      .options = {{.name = "SHELL",
                   .what = "the shell: bash, zsh or fish",
                   .completes = option::offer::words,
                   .known = shells()}},
      .examples = {{fmt::format("source <({} completion bash)", program.name),
                    "complete in this bash"},
                   {fmt::format("{0} completion fish > ~/.config/fish/completions/{0}.fish",
                                program.name),
                    "complete in every fish"}},
      .run =
          [&program](const arguments& given, console& out) {
            out.print(completion_script(program, shell_of(given)));
            return 0;
          },
  };
}

command man_command(const about& program) {
  return {
      .description = {fmt::format(
          "Prints the manual page in roff. An installation brings it as {}(1).", program.name)},
      .examples = {{fmt::format("{} man | man -l -", program.name),
                    "read the page without an installation"}},
      .run =
          [&program](const arguments&, console& out) {
            out.print(manual_page(program));
            return 0;
          },
  };
}

}  // namespace lockflight::tool
