// A command of a program: facts from which parsing, help, manual page and completion are made, and
// a function.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tool/lab_commands.hpp"

namespace lockflight::tool {

class console;

/// A text that lasts until the program ends. Few of the longer texts of commands are put together;
/// a program that copied the others would start more slowly.
class fact : public std::string_view {
 public:
  constexpr fact() = default;
  constexpr fact(const char* literal) : std::string_view(literal) {}
  fact(std::string made);  ///< keeps it
};

/// An option or a positional argument.
struct option {
  enum class offer { nothing, words, list_of_words, files, domains, a_command };

  std::string name;            ///< "--lock"; "FILE.json" for a positional
  std::string shorthand = {};  ///< "-o", or empty
  std::string earlier = {};    ///< its name in earlier versions, which is accepted as well
  std::string value = {};      ///< the name of its value; empty: it takes none
  fact what = {};              ///< the effect, without a final stop
  offer completes = offer::nothing;
  std::vector<std::string> known = {};  ///< the words that completion offers
  bool repeats = false;                 ///< may be given several times
  bool optional = false;                ///< a positional that may be left out

  [[nodiscard]] bool positional() const { return name.front() != '-'; }
};

struct example {
  fact line;  ///< the command line
  fact what;  ///< the effect
};

/// The names that an option takes, and their meanings.
struct glossary {
  std::string title;
  std::vector<std::pair<std::string, std::string>> entries;
};

/// The arguments of the command line, by option name. The value of a switch is its name.
class arguments {
 public:
  explicit arguments(std::map<std::string, std::vector<std::string>> given)
      : given_(std::move(given)) {}

  [[nodiscard]] bool has(const std::string& name) const { return !all(name).empty(); }
  [[nodiscard]] std::optional<std::string> one(const std::string& name) const {
    return has(name) ? std::optional(all(name).front()) : std::nullopt;
  }
  [[nodiscard]] const std::vector<std::string>& all(const std::string& name) const {
    static const std::vector<std::string> none;
    const auto at = given_.find(name);
    return at == given_.end() ? none : at->second;
  }
  [[nodiscard]] arguments without(const std::string& name) const {
    auto others = given_;
    others.erase(name);
    return arguments(std::move(others));
  }

 private:
  std::map<std::string, std::vector<std::string>> given_;
};

/// An option of another program that users may try here.
struct option_elsewhere {
  std::string name;        ///< "-w"
  std::string meant;       ///< the words that mean it here: "--timeout S"
  std::string value = {};  ///< its value in `meant`: "S"; empty: it takes none
};

/// An exit code and its meaning, for help and manual.
struct exit_status {
  int code;
  std::string_view what;
};

struct command {
  std::string name = {};          ///< set by made()
  std::vector<fact> description;  ///< paragraphs
  std::vector<option> options = {};
  std::vector<option_elsewhere> options_elsewhere = {};
  /// The names that an option takes, if there is more to say; made for help alone: it may read
  /// files to know them.
  glossary (*terms)() = nullptr;
  std::vector<example> examples = {};  ///< at least one
  /// The exit codes that differ from the program's.
  std::vector<exit_status> exit_codes = {};
  /// Runs the command. Returns the exit code: 0 or 1; throws for the others.
  std::function<int(const arguments& given, console& out)> run;
};

/// A command in the list of its program. Its facts are made when they are asked for: a program that
/// made those of all its commands would start more slowly.
struct entry {
  listing is;
  command (*make)();
};

[[nodiscard]] inline command made(const entry& of) {
  command c = of.make();
  c.name = of.is.name;
  return c;
}

}  // namespace lockflight::tool
