#include "tool/usage.hpp"

#include <fmt/format.h>

#include "catalogue/nearest.hpp"
#include "tool/text.hpp"

namespace lockflight::tool {
namespace {

/// Cuts only where a character begins: half of one would garble the line.
std::string clipped(std::string_view text, std::size_t longest) {
  if (text.size() <= longest) return std::string(text);
  std::size_t end = longest;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return std::string(text.substr(0, end)) + "…";
}

}  // namespace

std::string shown(std::string_view value) {
  constexpr std::size_t longest = 80;
  return "'" + clipped(one_line(value), longest) + "'";
}

usage_error refuse(std::string_view argument, std::string_view value, std::string_view accepted) {
  return usage_error(fmt::format("{} {} (accepted: {})", argument, shown(value), accepted));
}

usage_error unknown_name(std::string_view argument, const std::string& value,
                         const std::vector<std::string>& known) {
  return usage_error(
      fmt::format("{} {} {}", argument, shown(value), catalogue::accepted_names(value, known)));
}

}  // namespace lockflight::tool
