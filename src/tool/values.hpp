// Values of options, read strictly: all of the text must be the value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockflight::tool {

// Each throws usage_error that names the argument, its value and what is accepted.

[[nodiscard]] std::uint64_t whole_number(std::string_view argument, std::string_view text,
                                         std::uint64_t min, std::uint64_t max);

[[nodiscard]] double real_number(std::string_view argument, std::string_view text, double min,
                                 double max);
/// A real number of seconds, without a unit.
[[nodiscard]] double seconds_number(std::string_view argument, std::string_view text, double min,
                                    double max);

/// Any whole number, if other code checks which numbers there may be; `accepted` says it in
/// words.
[[nodiscard]] std::uint64_t any_whole_number(std::string_view argument, std::string_view text,
                                             std::string_view accepted);
[[nodiscard]] double any_real_number(std::string_view argument, std::string_view text,
                                     std::string_view accepted);
/// "1,2,2"; a repeated value counts once.
[[nodiscard]] std::vector<int> any_whole_numbers(std::string_view argument, const std::string& text,
                                                 std::string_view accepted);

/// "1,2,2".
[[nodiscard]] std::vector<int> each_whole_number(std::string_view argument, const std::string& text,
                                                 int min, int max);
/// The same; a repeated value counts once.
[[nodiscard]] std::vector<int> whole_numbers(std::string_view argument, const std::string& text,
                                             int min, int max);

/// The words between commas; a repeated word counts once. An empty word is refused.
[[nodiscard]] std::vector<std::string> words(std::string_view argument, const std::string& text,
                                             std::string_view accepted);

/// "name=value" with a whole value of either sign.
[[nodiscard]] std::pair<std::string, std::int64_t> assignment(std::string_view argument,
                                                              const std::string& text);

}  // namespace lockflight::tool
