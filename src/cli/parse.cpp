#include "cli/parse.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>
#include <utility>

#include "bench/bench.hpp"
#include "cli/text.hpp"
#include "cli/usage.hpp"

namespace lockflight::cli {
namespace {

/// CLI11 splits the line; values are read by the commands, so that every message has one form.
CLI::Option* declare(CLI::App& app, const option& o) {
  const std::string names = o.shorthand.empty() ? o.name : o.shorthand + "," + o.name;
  if (o.value.empty() && !o.positional()) {
    CLI::Option* const flag = app.add_flag(names);
    flag->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    return flag->disable_flag_override();
  }
  CLI::Option* const made = app.add_option(names);
  made->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  return made;
}

void prepare(CLI::App& app) {
  app.set_help_flag();
  app.allow_extras();  // we report them ourselves
}

struct program {
  CLI::App app{"", "lockflight"};
  std::map<const command*, CLI::App*> subcommands;
  std::map<const command*, std::map<std::string, CLI::Option*>> options;

  program() {
    prepare(app);
    app.require_subcommand(0, 1);
    declare(app, help_option());
    declare(app, version_option());
    for (const command& c : commands()) {
      CLI::App* const sub = app.add_subcommand(c.name, c.summary);
      subcommands[&c] = sub;
      prepare(*sub);
      options[&c][help_option().name] = declare(*sub, help_option());
      for (const option& o : c.options)
        if (o.completes != option::offer::a_command) options[&c][o.name] = declare(*sub, o);
    }
  }

  [[nodiscard]] const command* chosen() const {
    for (const auto& [of, sub] : subcommands)
      if (sub->parsed()) return of;
    return nullptr;
  }
};

std::vector<std::string> visible_options(const command* of) {
  std::vector<std::string> names{help_option().name};
  if (of == nullptr) names.push_back(version_option().name);
  if (of != nullptr)
    for (const option& o : of->options)
      if (!o.positional()) names.push_back(o.name);
  return names;
}

/// The error for a word that CLI11 did not know: an option, a command, or one word too many.
usage_error leftover(const command* of, const std::vector<std::string>& words) {
  for (const std::string& word : words)
    if (word.size() > 1 && word.front() == '-')
      return unknown_name("option", word.substr(0, word.find('=')), visible_options(of));
  if (of == nullptr) return unknown_name("command", words.front(), command_names());
  std::string accepted = "options";
  for (const option& o : of->options)
    if (o.positional() && o.completes != option::offer::a_command)
      accepted = fmt::format("one {}, and options", o.name);
  return refuse("argument", words.front(),
                fmt::format("{}; 'lockflight {} --help' lists them", accepted, of->name));
}

/// The value of "--name=value" among the words; it was given to a switch.
std::optional<std::pair<std::string, std::string>> value_of_switch(const command& of, int argc,
                                                                   const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos) continue;
    for (const option& o : of.options)
      if (o.value.empty() && !o.positional() && word.substr(0, equals) == o.name)
        return std::pair(o.name, word.substr(equals + 1));
  }
  return std::nullopt;
}

/// CLI11's own complaints: a value that is missing, or one given to a switch.
usage_error translate(const CLI::ParseError& error, const command* of, int argc,
                      const char* const* argv) {
  const std::string text = error.what();
  const std::string name = text.substr(0, text.find(':'));
  if (of != nullptr) {
    for (const option& o : of->options)
      if (o.name == name && !o.value.empty())
        return refuse(name, "", fmt::format("a value, {}", o.value));
    if (const auto found = value_of_switch(*of, argc, argv))
      return refuse(found->first, found->second, "no value; it is a switch");
  }
  return usage_error(fmt::format("{} (accepted: what 'lockflight {} --help' lists)", one_line(text),
                                 of == nullptr ? "" : of->name));
}

const std::vector<std::string>& check_values(const option& o,
                                             const std::vector<std::string>& values) {
  if (values.size() > 1 && !o.repeats)
    throw refuse(o.name, joined(values, " "), "one value; it was given more than once");
  for (const std::string& value : values)
    if (value.starts_with("--"))
      throw refuse(o.name, value, fmt::format("a value, {}; this looks like an option", o.value));
  return values;
}

/// How many words belong to the program: a command that runs another ends where "--" is.
int own_words(int argc, const char* const* argv) {
  for (const command& c : commands())
    for (const option& o : c.options)
      if (o.completes == option::offer::a_command && argc > 1 && c.name == argv[1])
        return static_cast<int>(std::find(argv, argv + argc, std::string_view("--")) - argv);
  return argc;
}

arguments collect(const command& of, const std::map<std::string, CLI::Option*>& options,
                  const std::vector<std::string>& other_words) {
  std::map<std::string, std::vector<std::string>> given;
  for (const option& o : of.options) {
    if (o.completes == option::offer::a_command) {
      given[o.name] = other_words;
      continue;
    }
    const CLI::Option& found = *options.at(o.name);
    if (found.count() == 0) continue;
    const bool is_switch = o.value.empty() && !o.positional();
    given[o.name] = is_switch ? std::vector<std::string>{"yes"} : check_values(o, found.results());
  }
  return arguments(std::move(given));
}

}  // namespace

invocation parse(int all, const char* const* argv) {
  const int argc = own_words(all, argv);
  const std::vector<std::string> others(argv + std::min(argc + 1, all), argv + all);
  program p;
  try {
    p.app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    throw translate(error, p.chosen(), argc, argv);
  }
  const command* const of = p.chosen();
  if (const auto rest = p.app.remaining(); !rest.empty()) throw leftover(nullptr, rest);
  if (p.app.count(help_option().name) > 0) return {.wants = invocation::kind::help, .of = of};
  if (p.app.count(version_option().name) > 0) return {.wants = invocation::kind::version};
  if (of == nullptr)
    throw usage_error(fmt::format("command '' (accepted: {}; 'lockflight --help' explains them)",
                                  joined(command_names())));
  if (const auto rest = p.subcommands.at(of)->remaining(); !rest.empty()) throw leftover(of, rest);
  const auto& options = p.options.at(of);
  if (options.at(help_option().name)->count() > 0)
    return {.wants = invocation::kind::help, .of = of};
  return {.of = of, .given = collect(*of, options, others)};
}

}  // namespace lockflight::cli
