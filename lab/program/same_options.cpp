#include "lab/program/same_options.hpp"

#include <fmt/format.h>

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tool/text.hpp"
#include "tool/usage.hpp"

namespace lockflight::lab {
namespace {

constexpr char end_of_word = '\0';

/// The values of each option of a command line. The words before the first option are those of "".
using values_by_option = std::map<std::string, std::vector<std::string>>;

values_by_option values_in(std::string_view line) {
  values_by_option found;
  std::string option;
  while (!line.empty()) {
    const std::string_view word = line.substr(0, line.find(end_of_word));
    line.remove_prefix(word.size() + 1);
    if (!word.starts_with("--")) {
      found[option].emplace_back(word);
      continue;
    }
    const std::size_t equals = word.find('=');
    option = word.substr(0, equals);
    found[option];  // also if it has no value
    if (equals != std::string_view::npos) found[option].emplace_back(word.substr(equals + 1));
  }
  return found;
}

/// "'0.2'", "given" of a switch, "not given".
std::string value_of(const values_by_option& line, const std::string& option) {
  const auto at = line.find(option);
  if (at == line.end()) return "not given";
  return at->second.empty() ? "given" : tool::shown(joined(at->second, " "));
}

std::string on_ranks(const std::vector<int>& which) {
  return fmt::format("on {} {}", which.size() == 1 ? "rank" : "ranks", tool::ranges(which));
}

}  // namespace

void require_same_options(bench::launch& on, int argc, const char* const* argv) {
  std::string mine;
  for (int i = 1; i < argc; ++i) (mine += argv[i]) += end_of_word;
  std::vector<values_by_option> lines;
  for (const auto& from : on.gather(mine)) lines.push_back(values_in(from.text));
  std::set<std::string> options;
  for (const values_by_option& line : lines)
    for (const auto& [option, values] : line) options.insert(option);
  for (const std::string& option : options) {
    const std::string first = value_of(lines.front(), option);
    std::map<std::string, std::vector<int>> ranks_by_value;
    for (std::size_t rank = 0; rank < lines.size(); ++rank)
      ranks_by_value[value_of(lines[rank], option)].push_back(static_cast<int>(rank));
    if (ranks_by_value.size() == 1) continue;
    std::vector<std::string> all{first + " " + on_ranks(ranks_by_value.at(first))};
    for (const auto& [value, ranks] : ranks_by_value)
      if (value != first) all.push_back(value + " " + on_ranks(ranks));
    throw tool::usage_error(fmt::format("{} differs: {} (accepted: the same on all ranks)",
                                        option.empty() ? "command" : option, joined(all, "; ")));
  }
}

}  // namespace lockflight::lab
