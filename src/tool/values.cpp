#include "tool/values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/number.hpp"
#include "catalogue/parameters.hpp"
#include "tool/usage.hpp"

namespace lockflight::tool {
namespace {

template <class T>
void add_once(std::vector<T>& to, const T& value) {
  if (std::find(to.begin(), to.end(), value) == to.end()) to.push_back(value);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

double number_between(std::string_view argument, std::string_view text, double min, double max,
                      std::string_view kind) {
  const auto value = read_number<double>(text);
  if (!value || !std::isfinite(*value) || *value < min || *value > max)
    throw refuse(argument, text, fmt::format("{} from {} to {}", kind, min, max));
  return *value;
}

}  // namespace

std::uint64_t whole_number(std::string_view argument, std::string_view text, std::uint64_t min,
                           std::uint64_t max) {
  const auto value = read_number<std::uint64_t>(text);
  if (!value || *value < min || *value > max)
    throw refuse(argument, text, fmt::format("a whole number from {} to {}", min, max));
  return *value;
}

double real_number(std::string_view argument, std::string_view text, double min, double max) {
  return number_between(argument, text, min, max, "a number");
}

double seconds_number(std::string_view argument, std::string_view text, double min, double max) {
  return number_between(argument, text, min, max, "a number of seconds");
}

std::uint64_t any_whole_number(std::string_view argument, std::string_view text,
                               std::string_view accepted) {
  const auto value = read_number<std::uint64_t>(text);
  if (!value) throw refuse(argument, text, accepted);
  return *value;
}

double any_real_number(std::string_view argument, std::string_view text,
                       std::string_view accepted) {
  const auto value = read_number<double>(text);
  if (!value) throw refuse(argument, text, accepted);
  return *value;
}

std::vector<int> any_whole_numbers(std::string_view argument, const std::string& text,
                                   std::string_view accepted) {
  std::vector<int> values;
  for (const std::string_view part : split(text, ',')) {
    const auto value = read_number<int>(part);
    if (!value) throw refuse(argument, text, accepted);
    add_once(values, *value);
  }
  return values;
}

std::vector<int> each_whole_number(std::string_view argument, const std::string& text, int min,
                                   int max) {
  std::vector<int> values;
  for (const std::string_view part : split(text, ',')) {
    const auto value = read_number<int>(part);
    if (!value || *value < min || *value > max)
      throw refuse(argument, text,
                   fmt::format("whole numbers from {} to {}, joined by commas", min, max));
    values.push_back(*value);
  }
  return values;
}

std::vector<int> whole_numbers(std::string_view argument, const std::string& text, int min,
                               int max) {
  std::vector<int> values;
  for (const int value : each_whole_number(argument, text, min, max)) add_once(values, value);
  return values;
}

std::vector<std::string> words(std::string_view argument, const std::string& text,
                               std::string_view accepted) {
  std::vector<std::string> values;
  for (const std::string_view part : split(text, ',')) {
    if (part.empty()) throw refuse(argument, text, accepted);
    add_once(values, std::string(part));
  }
  return values;
}

std::pair<std::string, std::int64_t> assignment(std::string_view argument,
                                                const std::string& text) {
  auto found = catalogue::parse_assignment(text);
  if (!found) throw refuse(argument, text, "NAME=VALUE with a whole number, such as T_R=1000");
  return *std::move(found);
}

}  // namespace lockflight::tool
