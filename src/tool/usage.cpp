#include "tool/usage.hpp"

#include <fmt/format.h>

#include "base/visible_text.hpp"
#include "catalogue/nearest.hpp"
#include "tool/text.hpp"

namespace lockflight::tool {

std::string shown(std::string_view value) { return in_quotes(value); }

usage_error refuse(std::string_view argument, std::string_view value, std::string_view accepted) {
  return usage_error(fmt::format("{} {} (accepted: {})", argument, shown(value), accepted));
}

usage_error refuse(const arguments& given, const std::string& option, std::string_view accepted) {
  const std::string value = given.one(option).value_or("");
  return value == option ? refuse("option", option, accepted) : refuse(option, value, accepted);
}

usage_error unknown_name(std::string_view argument, const std::string& value,
                         const std::vector<std::string>& known) {
  return usage_error(
      fmt::format("{} {} {}", argument, shown(value), catalogue::accepted_names(value, known)));
}

}  // namespace lockflight::tool
