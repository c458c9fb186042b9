#include "tool/tool.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <list>
#include <new>
#include <stdexcept>

#include "base/visible_text.hpp"
#include "tool/console.hpp"
#include "tool/help.hpp"
#include "tool/parse.hpp"
#include "tool/text.hpp"
#include "tool/version.hpp"

namespace lockflight::tool {
namespace {

constexpr int bad_usage = 2;

/// The name in error messages, as users type it: "lockflight bench", if the command is known.
std::string name_of(const about& program, int argc, const char* const* argv) {
  const bool known = argc > 1 && find_command(program, argv[1]) != nullptr;
  return known ? fmt::format("lockflight {}", argv[1]) : std::string(program.name);
}

int exit_code_of(const about& program, const std::exception& thrown) {
  if (program.exit_code_of != nullptr)
    if (const int code = program.exit_code_of(thrown); code != 0) return code;
  // usage_error, bench::bad_request, a bad shm::config
  return dynamic_cast<const std::invalid_argument*>(&thrown) != nullptr ? bad_usage
                                                                        : environment_failed;
}

int carry_out(const about& program, const invocation& asked, console& out) {
  switch (asked.wants) {
    case invocation::kind::help:
      out.print(asked.of ? command_help(*asked.of) : program_help(program));
      return 0;
    case invocation::kind::version:
      out.line(fmt::format("{} {}", program.name, version()));
      return 0;
    case invocation::kind::run:
      break;
  }
  return asked.of->run(asked.given, out);
}

}  // namespace

std::vector<std::string> command_names(const about& program) {
  std::vector<std::string> names;
  for (const entry& each : program.commands) names.emplace_back(each.is.name);
  for (const listing& each : program.passed_on) names.emplace_back(each.name);
  return names;
}

const entry* find_command(const about& program, std::string_view name) {
  const auto at = std::ranges::find_if(program.commands,
                                       [&](const entry& each) { return each.is.name == name; });
  return at == program.commands.end() ? nullptr : &*at;
}

bool passes_on(const about& program, std::string_view name) {
  return std::ranges::find(program.passed_on, name, &listing::name) != program.passed_on.end();
}

std::string_view named_command(int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i)
    if (const std::string_view word(argv[i]); !word.starts_with('-')) return word;
  return {};
}

int run(const about& program, int argc, const char* const* argv) {
  const auto say = [&](std::string_view what, int code) {
    if (program.speaks == nullptr || program.speaks())
      std::fputs(fmt::format("{}: {}\n", name_of(program, argc, argv), visible(what)).c_str(),
                 stderr);
    return code;
  };
  try {
    const invocation asked = parse(program, argc, argv);
    console out;
    const int code = carry_out(program, asked, out);
    out.finish();
    return code;
  } catch (const std::bad_alloc&) {
    return say("there is not enough memory", environment_failed);
  } catch (const std::exception& e) {
    return say(e.what(), exit_code_of(program, e));
  }
}

fact::fact(std::string made) {
  static std::list<std::string> all;
  static_cast<std::string_view&>(*this) = all.emplace_back(std::move(made));
}

const option& help_option() {
  static const option help{.name = "--help", .shorthand = "-h", .what = "print this help and exit"};
  return help;
}

const option& version_option() {
  static const option version{.name = "--version", .what = "print the version and exit"};
  return version;
}

const std::vector<exit_status>& exit_statuses() {
  static const std::vector<exit_status> all{
      {0, "fine"},
      {1, "what was checked does not hold, such as mutual exclusion"},
      {2, "bad usage or input; one line on standard error says what is accepted"},
      {3, "the environment failed: a rank died, memory or a file was refused"},
      {130, "interrupted (Ctrl-C)"},
  };
  return all;
}

}  // namespace lockflight::tool
