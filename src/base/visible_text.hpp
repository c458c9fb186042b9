// Text from elsewhere, such as the name of a lock or of a process, which may be any bytes, for a
// terminal, a message, or a format that is UTF-8. This is the one place that escapes or shortens
// such text. Bytes that cannot be written as they are become \xHH, one by one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace lockflight {

/// How many bytes the UTF-8 character has that `text` begins with; 0 if it begins with none.
[[nodiscard]] inline std::size_t character_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto is_in = [&](std::size_t i, unsigned char first, unsigned char last) {
    return i < text.size() && byte(i) >= first && byte(i) <= last;
  };
  if (is_in(0, 0x00, 0x7f)) return 1;
  if (is_in(0, 0xc2, 0xdf)) return is_in(1, 0x80, 0xbf) ? 2 : 0;
  // Longer forms of short characters, surrogates, and what is beyond the last character are none.
  if (is_in(0, 0xe0, 0xef))
    return is_in(1, byte(0) == 0xe0 ? 0xa0 : 0x80, byte(0) == 0xed ? 0x9f : 0xbf) &&
                   is_in(2, 0x80, 0xbf)
               ? 3
               : 0;
  if (is_in(0, 0xf0, 0xf4))
    return is_in(1, byte(0) == 0xf0 ? 0x90 : 0x80, byte(0) == 0xf4 ? 0x8f : 0xbf) &&
                   is_in(2, 0x80, 0xbf) && is_in(3, 0x80, 0xbf)
               ? 4
               : 0;
  return 0;
}

/// A control character of ASCII, or one from U+0080 to U+009F: a terminal may obey it.
[[nodiscard]] inline bool is_control(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first < 0x20 || first == 0x7f;
  return character.size() == 2 && first == 0xc2 && static_cast<unsigned char>(character[1]) < 0xa0;
}

/// A character that changes the direction of the text behind it: U+061C, U+200E and U+200F, U+202A
/// to U+202E, U+2066 to U+2069. A line with one may show something else than it says.
[[nodiscard]] inline bool changes_direction(std::string_view character) {
  if (character == "\xd8\x9c") return true;
  if (character.size() != 3 || !character.starts_with("\xe2")) return false;
  const auto last = static_cast<unsigned char>(character[2]);
  if (character[1] == '\x80') return last == 0x8e || last == 0x8f || (last >= 0xaa && last <= 0xae);
  return character[1] == '\x81' && last >= 0xa6 && last <= 0xa9;
}

namespace detail {

inline void add_hex(std::string& to, std::string_view bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  for (const char each : bytes) {
    const auto byte = static_cast<unsigned char>(each);
    to += {'\\', 'x', digits[byte >> 4], digits[byte & 0xf]};
  }
}

/// "\xHH", which stands in the text itself.
[[nodiscard]] inline bool begins_with_escape(std::string_view text) {
  return text.size() >= 4 && text.starts_with("\\x") &&
         text.substr(2, 2).find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
}

/// Whole characters as they are, unless `is_escaped(rest of the text, character)`.
template <class IsEscaped>
[[nodiscard]] std::string escaped(std::string_view text, IsEscaped is_escaped) {
  std::string made;
  while (!text.empty()) {
    const std::size_t bytes = character_bytes(text);
    const std::string_view taken = text.substr(0, std::max<std::size_t>(bytes, 1));
    if (bytes == 0 || is_escaped(text, taken))
      add_hex(made, taken);
    else
      made += taken;
    text.remove_prefix(taken.size());
  }
  return made;
}

}  // namespace detail

/// For a person: nothing but UTF-8, without control characters, so one line, and without characters
/// that change the direction. Text that is visible already stays as it is.
[[nodiscard]] inline std::string visible(std::string_view text) {
  return detail::escaped(text, [](std::string_view, std::string_view character) {
    return is_control(character) || changes_direction(character);
  });
}

/// For a program: UTF-8 from which the bytes can be read again, as two texts have never the same.
/// The backslash of a "\xHH" that is in the text becomes \x5c. Control characters stay as they are.
[[nodiscard]] inline std::string reversible(std::string_view text) {
  return detail::escaped(text, [](std::string_view rest, std::string_view) {
    return detail::begins_with_escape(rest);
  });
}

/// The same without control characters.
[[nodiscard]] inline std::string reversible_line(std::string_view text) {
  return detail::escaped(text, [](std::string_view rest, std::string_view character) {
    return detail::begins_with_escape(rest) || is_control(character);
  });
}

/// The first `columns` characters of visible text, each of which takes a column.
[[nodiscard]] inline std::string_view cut(std::string_view text, std::size_t columns) {
  std::size_t end = 0;
  for (; columns > 0 && end < text.size(); --columns)
    end += std::max<std::size_t>(character_bytes(text.substr(end)), 1);
  return text.substr(0, end);
}

/// A value in a message: visible, in quotes, and cut if it is long.
[[nodiscard]] inline std::string in_quotes(std::string_view value, std::size_t longest = 80) {
  // A character has at most 4 bytes, so what is left out here is not shown.
  const std::string all = visible(value.substr(0, 4 * (longest + 1)));
  const std::string_view begin = cut(all, longest);
  return "'" + std::string(begin) + (begin.size() < all.size() ? "…'" : "'");
}

}  // namespace lockflight
