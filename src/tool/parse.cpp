#include "tool/parse.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "base/visible_text.hpp"
#include "tool/text.hpp"
#include "tool/usage.hpp"

namespace lockflight::tool {
namespace {

using given_words = std::map<std::string, std::vector<std::string>>;

bool is_switch(const option& o) { return o.value.empty() && !o.positional(); }

/// Divides words into options with their values, positional arguments, and the rest.
class divider {
 public:
  /// `own` are beside those of a command, if there is one. All outlive this object.
  divider(std::initializer_list<const option*> own, const command* of) : known_(own) {
    if (of == nullptr) return;
    for (const option& o : of->options)
      if (o.completes != option::offer::a_command) known_.push_back(&o);
  }

  /// Throws usage_error for an option without its value, and for a switch with one.
  void divide(std::span<const char* const> words) {
    for (words_ = words; !words_.empty();) divide_one(next());
  }
  /// By the name of the option; a switch has its name for a value.
  [[nodiscard]] given_words& given() { return given_; }
  /// Words that are no option of these, and positional arguments of which there are too many.
  [[nodiscard]] const std::vector<std::string>& rest() const { return rest_; }

 private:
  std::string next() {
    const std::string word = words_.front();
    words_ = words_.subspan(1);
    return word;
  }

  void divide_one(const std::string& word) {
    constexpr std::string_view never_first = "-! \n";  // in the name of an option
    const auto begins_name = [&](std::size_t at) {
      return word.size() > at && never_first.find(word[at]) == std::string_view::npos;
    };
    if (word.starts_with("--") && begins_name(2))
      divide_long(word);
    else if (word.starts_with('-') && begins_name(1))
      divide_letters(word);
    else
      add_positional(word);
  }

  /// "--name", "--name=value" and "--name value".
  void divide_long(const std::string& word) {
    const std::size_t equals = word.find('=');
    const bool has_value = equals != std::string::npos;
    const option* const o = find(word.substr(0, equals));
    const std::string value = has_value ? word.substr(equals + 1) : "";
    if (o == nullptr)
      rest_.push_back(word);
    else if (!is_switch(*o) && has_value)
      given_[o->name].push_back(value);  // also an empty one: "--domain=$NAME" without a NAME
    else if (!is_switch(*o))
      add_value(*o, "");
    else if (value.empty() || value == "true")
      given_[o->name] = {o->name};
    else
      throw refuse(o->name, value, "no value; it is a switch");
  }

  /// "-n", "-nvalue", "-n value", and "-mn" for "-m -n".
  void divide_letters(const std::string& word) {
    const option* const o = find(word.substr(0, 2));
    if (o == nullptr) {
      if (std::isdigit(static_cast<unsigned char>(word[1])) != 0) return add_positional(word);
      return rest_.push_back(word);
    }
    if (!is_switch(*o)) return add_value(*o, word.substr(2));
    given_[o->name] = {o->name};
    if (word.size() > 2) divide_one('-' + word.substr(2));
  }

  /// An empty value is the next word.
  void add_value(const option& o, const std::string& value) {
    if (value.empty() && words_.empty())
      throw refuse(o.name, "", fmt::format("a value, {}", o.value));
    given_[o.name].push_back(value.empty() ? next() : value);
  }

  void add_positional(const std::string& word) {
    for (const option* const o : known_)
      if (o->positional() && (o->repeats || !given_.contains(o->name)))
        return given_[o->name].push_back(word);
    rest_.push_back(word);
  }

  [[nodiscard]] const option* find(const std::string& name) const {
    const auto at = std::ranges::find_if(known_, [&](const option* o) {
      return !o->positional() && (o->name == name || o->shorthand == name || o->earlier == name);
    });
    return at == known_.end() ? nullptr : *at;
  }

  std::vector<const option*> known_;
  std::span<const char* const> words_;
  given_words given_;
  std::vector<std::string> rest_;
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

/// The error for a word that is no argument: an option, a command, or one word too many.
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

void check_values(const option& o, const std::vector<std::string>& values) {
  if (values.size() > 1 && !o.repeats)
    throw refuse(o.name, joined(values, " "), "one value; it was given more than once");
  for (const std::string& value : values)
    if (value.starts_with("--"))
      throw refuse(o.name, value, fmt::format("a value, {}; this looks like an option", o.value));
}

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

arguments collect(const command& of, given_words given, const std::vector<std::string>& others) {
  for (const option& o : of.options)
    if (const auto at = given.find(o.name); at != given.end() && !is_switch(o))
      check_values(o, at->second);
  add_words(of, others, given);
  return arguments(std::move(given));
}

}  // namespace

invocation parse(const about& program, int argc, const char* const* argv) {
  invocation found;
  const std::span words(argv + std::min(argc, 1), argv + argc);
  const auto name = std::ranges::find(words, named_command(argc, argv));
  if (const entry* const named = find_command(program, named_command(argc, argv)))
    found.of = made(*named);
  const command* const of = found.of ? &*found.of : nullptr;
  const auto end_of_own = of == nullptr ? words.end() : name;
  const auto mark = std::find(end_of_own, words.end(), std::string_view("--"));

  divider own({&help_option(), &version_option()}, nullptr);
  own.divide({words.begin(), end_of_own});
  divider its({&help_option()}, of);
  if (of != nullptr) its.divide({std::next(name), mark});

  if (!own.rest().empty()) throw leftover(program, nullptr, own.rest());
  const bool asks_for_help = own.given().contains(help_option().name);
  if (!asks_for_help && own.given().contains(version_option().name))
    return {.wants = invocation::kind::version, .of = {}};
  if (of == nullptr && !asks_for_help)
    throw usage_error(fmt::format("command '' (accepted: {}; '{} --help' explains them)",
                                  joined(command_names(program)), program.name));
  if (asks_for_help) {
    found.wants = invocation::kind::help;
    return found;
  }
  if (!its.rest().empty()) throw leftover(program, of, its.rest());
  if (its.given().contains(help_option().name)) {
    found.wants = invocation::kind::help;
  } else {
    std::vector<std::string> others;
    if (mark != words.end()) others.assign(std::next(mark), words.end());
    found.given = collect(*of, std::move(its.given()), others);
  }
  return found;
}

}  // namespace lockflight::tool
