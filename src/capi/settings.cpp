#include "capi/settings.hpp"

#include <algorithm>
#include <charconv>

namespace lockflight::capi {
namespace {

[[nodiscard]] setting parse_one(std::string_view text) {
  const std::size_t equals = text.find('=');
  const std::string_view number =
      equals == std::string_view::npos ? std::string_view() : text.substr(equals + 1);
  setting read{std::string(text.substr(0, equals)), 0};
  const char* const end = number.data() + number.size();
  const auto [next, error] = std::from_chars(number.data(), end, read.value);
  if (number.empty() || error != std::errc() || next != end)
    throw std::invalid_argument("parameters '" + std::string(text) +
                                "' (accepted: name=number, such as T_R=100, joined by commas)");
  return read;
}

}  // namespace

std::vector<setting> parse_settings(std::string_view text) {
  std::vector<setting> found;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    found.push_back(parse_one(text.substr(0, comma)));
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
    if (text.empty()) found.push_back(parse_one(text));  // a comma with nothing behind it
  }
  return found;
}

void lay_over(const std::map<std::string, std::int64_t>& values, std::vector<setting>& set) {
  for (const auto& [name, value] : values)
    if (std::none_of(set.begin(), set.end(), [&](const setting& s) { return s.name == name; }))
      set.push_back({name, value});
}

}  // namespace lockflight::capi
