#include "capi/settings.hpp"

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

}  // namespace lockflight::capi
