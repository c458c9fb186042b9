// The command line of `lockflight run`, read by the front of the program.
#include <array>
#include <charconv>
#include <string_view>

#include "cli/guarded.hpp"

namespace lockflight::cli {
namespace {

/// Nothing follows the number.
template <class T>
bool reads_whole(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

class line_reader {
 public:
  /// Reads an option and its value. False if they are not sound.
  bool read_value(std::string_view option, std::string_view value) {
    if (value.empty() || value.starts_with('-')) return false;
    if (option == "-E") option = "--conflict-exit-code";
    for (std::size_t i = 0; i < options.size(); ++i)
      if (options[i].name == option) {
        if (given_[i]) return false;
        given_[i] = true;
        return options[i].read(value, found);
      }
    return false;
  }
  /// Whether the options agree with each other.
  [[nodiscard]] bool is_sound() const {
    constexpr unsigned of_group = 0660;
    return !found.name.empty() && (found.group.empty() || found.mode == of_group);
  }

  guarded_command found;

 private:
  struct option_with_value {
    std::string_view name;
    bool (*read)(std::string_view value, guarded_command& to);
  };

  static bool read_timeout(std::string_view value, guarded_command& to) {
    double seconds = 0;
    if (to.within_ns || !reads_whole(value, seconds) || !(seconds >= 0) || seconds > longest_wait_s)
      return false;
    to.within_ns = static_cast<std::uint64_t>(seconds * 1e9);
    return true;
  }
  static bool read_mode(std::string_view value, guarded_command& to) {
    const auto mode = domain_mode(value);
    to.mode = mode.value_or(0);
    return mode.has_value();
  }
  static bool read_code(std::string_view value, guarded_command& to) {
    constexpr int largest = 255;
    return reads_whole(value, to.conflict_exit_code) && to.conflict_exit_code >= 0 &&
           to.conflict_exit_code <= largest;
  }

  static constexpr std::array<option_with_value, 5> options{
      {{"--domain", [](auto value, auto& to) { return to.domain = value, true; }},
       {"--timeout", read_timeout},
       {"--mode", read_mode},
       {"--group", [](auto value, auto& to) { return to.group = value, true; }},
       {"--conflict-exit-code", read_code}}};
  std::array<bool, options.size()> given_{};
};

}  // namespace

std::optional<unsigned> domain_mode(std::string_view text) {
  constexpr unsigned private_mode = 0600;
  constexpr unsigned group_mode = 0660;
  if (text == "0600" || text == "600") return private_mode;
  if (text == "0660" || text == "660") return group_mode;
  return std::nullopt;
}

std::optional<guarded_command> sound_run_line(int argc, char** argv) {
  line_reader line;
  guarded_command& found = line.found;
  int at = 2;
  for (; at < argc && std::string_view(argv[at]) != "--"; ++at) {
    const std::string_view word(argv[at]);
    if (word == "--shared") {
      found.shared = true;
    } else if (word == "--nonblock") {
      if (found.within_ns) return std::nullopt;
      found.within_ns = 0;
    } else if (word.starts_with('-')) {
      if (at + 1 >= argc || !line.read_value(word, argv[at + 1])) return std::nullopt;
      ++at;
    } else {
      if (!found.name.empty() || !is_lock_name(word)) return std::nullopt;
      found.name = word;
    }
  }
  if (!line.is_sound() || at + 1 >= argc) return std::nullopt;
  found.words.assign(argv + at + 1, argv + argc);
  found.words.push_back(nullptr);
  return found;
}

}  // namespace lockflight::cli
