#include "tool/man.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "tool/help.hpp"
#include "tool/version.hpp"

namespace lockflight::tool {
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
  for (const std::string_view text : c.description) out += paragraph(text);
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
  for (const example& e : c.examples) out += tagged(e.line, fmt::format("{}.", e.what));
  return out;
}

std::string in_capitals(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](unsigned char c) { return std::toupper(c); });
  return out;
}

/// The commands that another program explains.
std::string commands_passed_on(const about& program) {
  if (program.passed_on.empty()) return "";
  std::string out = section(in_capitals(program.passed_on_title));
  out += paragraph(fmt::format("{}(1) explains them.", program.passed_on_to));
  for (const listing& each : program.passed_on)
    out += tagged(each.name, fmt::format("{}.", each.summary));
  return out;
}

}  // namespace

std::string manual_page(const about& program) {
  // No date: the page of a version is the same whenever it is made.
  std::string out = fmt::format(
      ".\\\" Made by '{0} man'.\n.TH {1} 1 \"\" \"lockflight {2}\" \"User Commands\"\n.nh\n.ad l\n",
      program.name, escaped(in_capitals(program.name)), version());
  out += section("NAME");
  out += fmt::format("{} \\- {}\n", escaped(program.name), escaped(program.summary));
  out += section("SYNOPSIS");
  out += fmt::format(".B {}\n.I COMMAND\n.RI [ OPTIONS ]\n", escaped(program.name));
  out += section("OPTIONS");
  out += option_text(help_option()) + option_text(version_option());
  out += paragraph("Every command knows --help as well.");
  out += section("COMMANDS");
  for (const entry& each : program.commands) out += command_text(made(each));
  out += commands_passed_on(program);
  out += section("EXIT STATUS");
  for (const exit_status& s : exit_statuses())
    out += tagged(fmt::format("{}", s.code), fmt::format("{}.", s.what));
  out += section("ENVIRONMENT");
  for (const auto& [name, what] : program.environment)
    out += tagged(name, fmt::format("{}.", what));
  out += tagged("NO_COLOR", "If it is set to anything, output has no colours.");
  out += tagged("COLUMNS", "The width of the terminal, if it is not what the system says.");
  return out;
}

}  // namespace lockflight::tool
