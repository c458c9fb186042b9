#include "tool/parse.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

#include "base/visible_text.hpp"
#include "tool/text.hpp"
#include "tool/usage.hpp"

namespace lockflight::tool {
namespace {

/// CLI11 splits the line; values are read by the commands, so that every message has one form.
CLI::Option* declare(CLI::App& app, const option& o) {
  std::string names = o.name;
  for (const std::string& other : {o.shorthand, o.earlier})
    if (!other.empty()) names += "," + other;
  if (o.value.empty() && !o.positional()) {
    CLI::Option* const flag = app.add_flag(names);
    flag->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    return flag->disable_flag_override();
  }
  CLI::Option* const made = app.add_option(names);
  made->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  if (o.positional() && o.repeats) made->expected(-1);  // one or more
  return made;
}

void prepare(CLI::App& app) {
  app.set_help_flag();
  app.allow_extras();  // we report them ourselves
}

/// CLI11's view of a line. It knows the one command that the line names.
struct grammar {
  CLI::App app{"", "lockflight"};
  CLI::App* subcommand = nullptr;
  std::map<std::string, CLI::Option*> options;  ///< of the command, by name

  explicit grammar(const command* of) {
    prepare(app);
    app.require_subcommand(0, 1);
    declare(app, help_option());
    declare(app, version_option());
    if (of == nullptr) return;
    subcommand = app.add_subcommand(of->name);
    prepare(*subcommand);
    options[help_option().name] = declare(*subcommand, help_option());
    for (const option& o : of->options)
      if (o.completes != option::offer::a_command) options[o.name] = declare(*subcommand, o);
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

/// A word as a shell reads it.
std::string in_shell(const std::string& word) {
  if (std::ranges::all_of(word, [](unsigned char c) {
        return std::isalnum(c) != 0 ||
               std::string_view("+,-./:=@_").find(static_cast<char>(c)) != std::string_view::npos;
      }))
    return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

/// The meaning here of an option of another program, `name`; with its value, if `value` is not
/// empty. Empty if the command does not know that option.
option_elsewhere meaning_of(const command& of, const std::string& name, const std::string& value) {
  option_elsewhere found;
  for (const option_elsewhere& each : of.options_elsewhere)
    if (each.name == name) found = each;
  for (const option& own : of.options)  // beside others in one word
    if (own.shorthand == name) found = {name, own.name + ' ' + own.value, own.value};
  if (!found.value.empty() && !value.empty())
    found.meant.replace(found.meant.rfind(found.value), found.value.size(), in_shell(value));
  return found;
}

/// The meaning here of a word that has options of another program, such as "--wait=5" and "-nw5".
/// Empty if one of them is not known; a letter of several is then `unknown`.
std::string meaning_of_word(const command& of, const std::string& word, std::string& unknown) {
  const std::size_t equals = std::min(word.find('='), word.size());
  if (word.starts_with("--") || equals == 2)
    return meaning_of(of, word.substr(0, equals), word.substr(std::min(equals + 1, word.size())))
        .meant;
  std::string all;
  for (std::size_t i = 1; i < word.size(); ++i) {
    const std::string name{'-', word[i]};
    const option_elsewhere one = meaning_of(of, name, word.substr(i + 1));
    if (one.meant.empty()) {
      unknown = name;
      return "";
    }
    const bool is_last = !one.value.empty() || i + 1 == word.size();
    if (all.empty() && is_last) return one.meant;
    all += fmt::format("{}for {}: {}", all.empty() ? "" : "; ", name, one.meant);
    if (is_last) break;
  }
  return all;
}

usage_error one_too_many(const command& of, const std::string& word) {
  std::string accepted = "options";
  for (const option& o : of.options)
    if (o.positional() && o.completes != option::offer::a_command)
      accepted = fmt::format("one {}, and options", o.name);
  return refuse("argument", word,
                fmt::format("{}; 'lockflight {} --help' lists them", accepted, of.name));
}

bool runs_another(const command& of) {
  return std::ranges::any_of(
      of.options, [](const option& each) { return each.completes == option::offer::a_command; });
}

/// The end of the error about an unknown option, which may be meant as an argument.
std::string place_of_arguments(const command& of, const std::string& word) {
  if (word.starts_with("--") || std::ranges::none_of(of.options, &option::positional)) return "";
  return fmt::format("; an argument that begins with '-' stands {}",
                     runs_another(of) ? "between two --" : "after --");
}

/// The error for a word that CLI11 did not know: an option, a command, or one word too many.
usage_error leftover(const about& program, const command* of,
                     const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (word.size() < 2 || word.front() != '-') continue;
    std::string unknown = word.substr(0, word.find('='));
    if (of != nullptr)
      if (const std::string meant = meaning_of_word(*of, word, unknown); !meant.empty())
        return refuse("option", word, meant);
    const usage_error found = unknown_name(word.starts_with(unknown + '=') || word == unknown
                                               ? "option"
                                               : fmt::format("in {}, option", shown(word)),
                                           unknown, visible_options(of));
    return of == nullptr ? found : usage_error(found.what() + place_of_arguments(*of, word));
  }
  if (of == nullptr) return unknown_name("command", words.front(), command_names(program));
  return one_too_many(*of, words.front());
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
  return usage_error(fmt::format("{} (accepted: what 'lockflight {}--help' lists)", visible(text),
                                 of == nullptr ? "" : of->name + ' '));
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

/// How many words may be options: those before the first "--" after the command's name.
int own_words(const command* of, int argc, const char* const* argv) {
  if (of == nullptr) return argc;
  const auto* const name = std::find(argv, argv + argc, of->name);
  return static_cast<int>(std::find(name, argv + argc, std::string_view("--")) - argv);
}

using given_words = std::map<std::string, std::vector<std::string>>;

/// Gives words after "--" to the arguments of the command that have none yet. A command that runs
/// another one gets its own between two "--", and else that one's.
void add_words(const command& of, std::vector<std::string> words, given_words& to) {
  const bool another = runs_another(of);
  for (const option& o : of.options) {
    if (!o.positional() || words.empty()) continue;
    if (o.completes == option::offer::a_command) {
      to[o.name] = std::exchange(words, {});
      continue;
    }
    if (to.contains(o.name)) continue;
    const auto mark = std::ranges::find(words, "--");
    if (another && mark == words.end()) continue;
    const auto end = another ? mark : o.repeats ? words.end() : words.begin() + 1;
    to[o.name].assign(words.begin(), end);
    words.erase(words.begin(), end + (another ? 1 : 0));
  }
  if (!words.empty()) throw one_too_many(of, words.front());
}

arguments collect(const command& of, const std::map<std::string, CLI::Option*>& options,
                  const std::vector<std::string>& other_words) {
  given_words given;
  for (const option& o : of.options) {
    if (o.completes == option::offer::a_command) continue;
    const CLI::Option& found = *options.at(o.name);
    if (found.count() == 0) continue;
    const bool is_switch = o.value.empty() && !o.positional();
    given[o.name] = is_switch ? std::vector<std::string>{o.name} : check_values(o, found.results());
  }
  add_words(of, other_words, given);
  return arguments(std::move(given));
}

}  // namespace

invocation parse(const about& program, int all, const char* const* argv) {
  invocation found;
  if (const entry* const named = find_command(program, named_command(all, argv)))
    found.of = made(*named);
  const command* const of = found.of ? &*found.of : nullptr;
  const int argc = own_words(of, all, argv);
  const std::vector<std::string> others(argv + std::min(argc + 1, all), argv + all);
  grammar g(of);
  try {
    g.app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    throw translate(error, of, argc, argv);
  }
  if (const auto rest = g.app.remaining(); !rest.empty()) throw leftover(program, nullptr, rest);
  const bool asks_for_help = g.app.count(help_option().name) > 0;
  if (!asks_for_help && g.app.count(version_option().name) > 0)
    return {.wants = invocation::kind::version, .of = {}};
  if (of == nullptr && !asks_for_help)
    throw usage_error(fmt::format("command '' (accepted: {}; '{} --help' explains them)",
                                  joined(command_names(program)), program.name));
  if (of == nullptr) return {.wants = invocation::kind::help, .of = {}};
  if (asks_for_help) {
    found.wants = invocation::kind::help;
    return found;
  }
  if (const auto rest = g.subcommand->remaining(); !rest.empty()) throw leftover(program, of, rest);
  if (g.options.at(help_option().name)->count() > 0)
    found.wants = invocation::kind::help;
  else
    found.given = collect(*of, g.options, others);
  return found;
}

}  // namespace lockflight::tool
