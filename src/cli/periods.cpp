#include "cli/periods.hpp"

#include <array>
#include <ctime>
#include <optional>
#include <string_view>

#include "base/number.hpp"
#include "tool/usage.hpp"

namespace lockflight::cli {
namespace {

constexpr wall_seconds day = 86'400;
constexpr wall_seconds longest = 3'660 * day;

std::optional<wall_seconds> unit_of(char suffix) {
  switch (suffix) {
    case 's':
      return 1;
    case 'm':
      return 60;
    case 'h':
      return 3'600;
    case 'd':
      return day;
    default:
      return std::nullopt;
  }
}

std::optional<wall_seconds> length_from(std::string_view text) {
  if (text.empty()) return std::nullopt;
  const auto unit = unit_of(text.back());
  const auto count = read_number<std::uint32_t>(text.substr(0, text.size() - 1));
  if (!unit || !count || *count == 0 || *count * *unit > longest) return std::nullopt;
  return *count * *unit;
}

}  // namespace

wall_seconds length_of_time(const std::string& argument, const std::string& text) {
  if (const auto length = length_from(text)) return *length;
  throw tool::refuse(argument, text,
                     "a whole number from 1 and s, m, h or d, such as 90s, 30m, 1h or 1d, and at "
                     "most 3660d");
}

wall_seconds seconds_of_wall_clock() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<wall_seconds>(now.tv_sec);
}

wall_seconds end_of_present_period(wall_seconds length) {
  return (seconds_of_wall_clock() / length + 1) * length;
}

std::string utc_text(wall_seconds at) {
  const auto seconds = static_cast<time_t>(at);
  tm parts{};
  std::array<char, 64> text{};
  if (gmtime_r(&seconds, &parts) == nullptr ||
      std::strftime(text.data(), text.size(), "%F %T UTC", &parts) == 0)
    return std::to_string(at) + " s after 1970";
  return text.data();
}

}  // namespace lockflight::cli
