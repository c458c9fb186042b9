#include "cli/unit_options.hpp"

#include <algorithm>

#include "base/numbers.hpp"
#include "tool/usage.hpp"
#include "tool/values.hpp"

namespace lockflight::cli {
namespace {

constexpr int most_units = 1024;
constexpr int last_chosen = 61;  // the greatest number in a list
constexpr int most_taken = 31;   // a thread holds 32 locks at most

bool is_list(std::string_view text) { return text.find(',') != std::string_view::npos; }

/// The numbers of "0,1,3" or of "3,"; nothing if they are not accepted.
std::optional<std::vector<int>> list_from(std::string_view text) {
  if (text.ends_with(',')) text.remove_suffix(1);
  auto numbers = read_numbers(text);
  if (!numbers) return std::nullopt;
  std::ranges::sort(*numbers);
  const bool is_accepted = numbers->front() >= 0 && numbers->back() <= last_chosen &&
                           std::ranges::adjacent_find(*numbers) == numbers->end();
  return is_accepted ? numbers : std::nullopt;
}

}  // namespace

units units_from(const std::string& option, const std::string& text) {
  units what;
  if (is_list(text)) {
    if (const auto numbers = list_from(text)) return what.numbers = *numbers, what;
  } else if (const auto count = read_number<int>(text);
             count && *count >= 1 && *count <= most_units) {
    return what.count = *count, what;
  }
  throw tool::refuse(option, text,
                     "a whole number from 1 to 1024, or a list of numbers from 0 to 61, such as "
                     "'0,1,3' or '3,'");
}

int take_from(const std::string& option, const std::string& text, const units& of) {
  return static_cast<int>(tool::whole_number(
      option, text, 1, static_cast<std::uint64_t>(std::min(count_of(of), most_taken))));
}

int count_of(const units& of) {
  return of.numbers.empty() ? of.count : static_cast<int>(of.numbers.size());
}

}  // namespace lockflight::cli
