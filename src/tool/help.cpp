#include "tool/help.hpp"

#include <fmt/format.h>

#include "tool/text.hpp"

namespace lockflight::tool {
namespace {

constexpr int width = 80;

std::string rows(const std::vector<labelled>& all) { return two_columns(all, width, 2); }

std::string exit_codes(const std::vector<exit_status>& codes) {
  std::vector<labelled> all;
  for (const exit_status& s : codes)
    all.push_back({fmt::format("{}", s.code), std::string(s.what)});
  return "\nExit codes:\n" + rows(all);
}

void add_positionals(const command& of, std::vector<labelled>& to) {
  for (const option& o : of.options)
    if (o.positional()) to.push_back({heading_of(o), std::string(o.what)});
}

void add_options(const command& of, std::vector<labelled>& to) {
  for (const option& o : of.options)
    if (!o.positional()) to.push_back({heading_of(o), std::string(o.what)});
  to.push_back({heading_of(help_option()), std::string(help_option().what)});
}

}  // namespace

std::string heading_of(const option& o) {
  std::string out = o.shorthand.empty() ? "" : o.shorthand + ", ";
  out += o.name;
  if (!o.value.empty()) out += " " + o.value;
  return out;
}

std::string synopsis(const command& of) {
  std::string out = "lockflight " + of.name;
  for (const option& o : of.options)
    if (o.positional() && o.completes != option::offer::a_command)
      out += o.optional  ? fmt::format(" [{}]", o.name)
             : o.repeats ? fmt::format(" {}...", o.name)
                         : " " + o.name;
  for (const option& o : of.options)
    if (o.completes == option::offer::a_command)
      return out + fmt::format(" [OPTIONS] -- {} [ARG...]", o.name);
  return out + " [OPTIONS]";
}

std::string program_help(const about& program) {
  std::string out = wrapped(fmt::format("{}: {}.", program.name, program.summary), width, 0);
  out += fmt::format("\nUsage: {} COMMAND [OPTIONS]\n\nCommands:\n", program.name);
  std::vector<labelled> all;
  std::string examples;
  for (const entry& each : program.commands) {
    all.push_back({std::string(each.is.name), std::string(each.is.summary)});
    examples += fmt::format("  {}\n", each.make().examples.front().line);
  }
  out += rows(all);
  if (!program.passed_on.empty()) {
    all.clear();
    for (const listing& each : program.passed_on)
      all.push_back({std::string(each.name), std::string(each.summary)});
    out += fmt::format("\n{}:\n{}", program.passed_on_title, rows(all));
  }
  out += "\nOptions:\n";
  out += rows({{heading_of(help_option()), std::string(help_option().what)},
               {heading_of(version_option()), std::string(version_option().what)}});
  out += "\nExamples:\n" + examples + exit_codes(exit_statuses());
  return out + fmt::format("\n'{} COMMAND --help' explains a command.\n", program.name);
}

std::string command_help(const command& of) {
  std::string out = fmt::format("Usage: {}\n", synopsis(of));
  for (const std::string_view paragraph : of.description)
    out += "\n" + wrapped(paragraph, width, 0);
  std::vector<labelled> positionals;
  add_positionals(of, positionals);
  if (!positionals.empty()) out += "\nArguments:\n" + rows(positionals);
  std::vector<labelled> options;
  add_options(of, options);
  out += "\nOptions:\n" + rows(options);
  if (of.terms) {
    const glossary g = of.terms();
    std::vector<labelled> entries;
    for (const auto& [name, what] : g.entries) entries.push_back({name, what});
    out += fmt::format("\n{}:\n{}", g.title, rows(entries));
  }
  out += "\nExamples:\n";
  for (const example& e : of.examples)
    out += fmt::format("  {}\n{}", e.line, wrapped(e.what, width, 6));
  return out + exit_codes(of.exit_codes.empty() ? exit_statuses() : of.exit_codes);
}

}  // namespace lockflight::tool
