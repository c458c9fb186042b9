// A number that is read from text.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace lockflight {

/// The number that the whole text is, without spaces or a plus sign. None if it is something else,
/// or does not fit. A floating-point number can be "inf" or "nan".
template <class Number>
[[nodiscard]] std::optional<Number> read_number(std::string_view text) {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end ? std::optional(value) : std::nullopt;
}

}  // namespace lockflight
