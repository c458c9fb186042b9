// A subcommand: facts from which parsing, help, manual page and completion are made, and a
// function. A new subcommand is a new file and a line in commands.cpp.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockflight::cli {

class console;

/// One option or positional argument.
struct option {
  enum class offer { nothing, words, list_of_words, files, domains, a_command };

  std::string name;            ///< "--lock"; "FILE.json" for a positional
  std::string shorthand = {};  ///< "-o", or empty
  std::string value = {};      ///< the name of its value; empty: it takes none
  std::string what = {};       ///< its effect, without a final stop
  offer completes = offer::nothing;
  std::vector<std::string> known = {};  ///< the words that completion offers
  bool repeats = false;                 ///< may be given several times
  bool optional = false;                ///< a positional that may be left out

  [[nodiscard]] bool positional() const { return name.front() != '-'; }
};

struct example {
  std::string line;  ///< the command line
  std::string what;  ///< its effect
};

/// The names that an option takes, and their meanings.
struct glossary {
  std::string title;
  std::vector<std::pair<std::string, std::string>> entries;
};

/// The arguments of the command line, by option name.
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

 private:
  std::map<std::string, std::vector<std::string>> given_;
};

/// One exit code and its meaning, for help and manual.
struct exit_status {
  int code;
  std::string_view what;
};

struct command {
  std::string name;
  std::string summary;                   ///< one line for the list of commands
  std::vector<std::string> description;  ///< paragraphs
  std::vector<option> options = {};
  /// The names that an option takes, if there is more to say; made for help alone: it may read
  /// files to know them.
  glossary (*terms)() = nullptr;
  std::vector<example> examples = {};  ///< at least one
  /// Those that differ from the program's.
  std::vector<exit_status> exit_codes = {};
  /// Runs the command. Returns the exit code: 0 or 1; throws for the others.
  int (*run)(const arguments& given, console& out) = nullptr;
};

/// All subcommands, in the order in which help lists them.
[[nodiscard]] const std::vector<command>& commands();
[[nodiscard]] std::vector<std::string> command_names();

/// The options that every command has, and those of the bare program.
[[nodiscard]] const option& help_option();
[[nodiscard]] const option& version_option();

[[nodiscard]] const std::vector<exit_status>& exit_statuses();

// One function for each file.
[[nodiscard]] command run_command();
[[nodiscard]] command who_command();
[[nodiscard]] command top_command();
[[nodiscard]] command domain_command();
[[nodiscard]] command locks_command();
[[nodiscard]] command topo_command();
[[nodiscard]] command bench_command();
[[nodiscard]] command tune_command();
[[nodiscard]] command check_command();
[[nodiscard]] command reproduce_command();
[[nodiscard]] command grid_command();
[[nodiscard]] command report_command();
[[nodiscard]] command doctor_command();
[[nodiscard]] command completion_command();
[[nodiscard]] command man_command();

}  // namespace lockflight::cli
