// lockflight man: the manual page, made from the same facts as --help.
#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/console.hpp"
#include "cli/help.hpp"
#include "cli/version.hpp"

namespace lockflight::cli {
namespace {

/// Text that roff prints as it is: no hyphen becomes a dash, no line begins a request.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '-')
      out += "\\-";
    else if (c == '\\')
      out += "\\e";
    else if (c == '\'')
      out += "\\(aq";
    else
      out += c;
  }
  if (out.starts_with('.')) out.insert(0, "\\&");
  return out;
}

std::string section(std::string_view title) { return fmt::format(".SH {}\n", title); }
std::string paragraph(std::string_view text) { return fmt::format(".PP\n{}\n", escaped(text)); }

/// A tagged paragraph: the text to type, in bold, and its meaning.
std::string tagged(std::string_view tag, std::string_view what) {
  return fmt::format(".TP\n\\fB{}\\fR\n{}\n", escaped(tag), escaped(what));
}

std::string option_text(const option& o) {
  std::string tag = fmt::format("\\fB{}\\fR", escaped(o.name));
  if (!o.shorthand.empty()) tag = fmt::format("\\fB{}\\fR, ", escaped(o.shorthand)) + tag;
  if (!o.value.empty()) tag += fmt::format(" \\fI{}\\fR", escaped(o.value));
  return fmt::format(".TP\n{}\n{}.\n", tag, escaped(o.what));
}

std::string command_text(const command& c) {
  std::string out = fmt::format(".SS {}\n", escaped(synopsis(c)));
  for (const std::string& text : c.description) out += paragraph(text);
  for (const option& o : c.options) out += option_text(o);
  if (c.terms) {
    const glossary g = c.terms();
    out += fmt::format(".PP\n{}:\n", g.title);
    for (const auto& [name, what] : g.entries) out += tagged(name, what + ".");
  }
  if (!c.exit_codes.empty()) out += ".PP\nExit codes:\n";
  for (const exit_status& s : c.exit_codes)
    out += tagged(fmt::format("{}", s.code), fmt::format("{}.", s.what));
  out += ".PP\nExamples:\n";
  for (const example& e : c.examples) out += tagged(e.line, e.what + ".");
  return out;
}

std::string page() {
  // No date: the page of a version is the same whenever it is made.
  std::string out = fmt::format(
      ".\\\" Made by 'lockflight man'.\n.TH LOCKFLIGHT 1 \"\" \"lockflight {}\" \"User Commands\"\n"
      ".nh\n.ad l\n",
      version());
  out += section("NAME");
  out += fmt::format("lockflight \\- {}\n", escaped(program_summary()));
  out += section("SYNOPSIS");
  out += ".B lockflight\n.I COMMAND\n.RI [ OPTIONS ]\n";
  out += section("OPTIONS");
  out += option_text(help_option()) + option_text(version_option());
  out += paragraph("Every command knows --help as well.");
  out += section("COMMANDS");
  for (const command& c : commands()) out += command_text(c);
  out += section("EXIT STATUS");
  for (const exit_status& s : exit_statuses())
    out += tagged(fmt::format("{}", s.code), fmt::format("{}.", s.what));
  out += section("ENVIRONMENT");
  out += tagged("NO_COLOR", "If it is set to anything, output has no colours.");
  out += tagged("COLUMNS", "The width of the terminal, if it is not what the system says.");
  out += tagged("LOCKFLIGHT_PROFILE",
                "A profile that 'lockflight tune' has made, for programs that use the library for "
                "C or run under the drop-in for MPI; this program has bench --profile.");
  return out;
}

int run_man(const arguments&, console& out) {
  out.print(page());
  return 0;
}

}  // namespace

command man_command() {
  return {
      .name = "man",
      .summary = "print the manual page",
      .description = {"Prints the manual page in roff. An installation brings it as "
                      "lockflight(1)."},
      .options = {},
      .examples = {{"lockflight man | man -l -", "read it without installing anything"}},
      .run = run_man,
  };
}

}  // namespace lockflight::cli
