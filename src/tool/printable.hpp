// Text from elsewhere, such as the name of a lock or of a process, for a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lockflight::tool {

/// How many bytes the UTF-8 character has that `text` begins with; 0 if it begins with none.
[[nodiscard]] inline std::size_t character_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto goes_on = [&](std::size_t i) { return i < text.size() && (byte(i) & 0xc0) == 0x80; };
  if (text.empty()) return 0;
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  std::size_t bytes = 0;
  if (first >= 0xc2 && first <= 0xdf) bytes = 2;
  if (first >= 0xe0 && first <= 0xef) bytes = 3;
  if (first >= 0xf0 && first <= 0xf4) bytes = 4;
  for (std::size_t i = 1; i < bytes; ++i)
    if (!goes_on(i)) return 0;
  return bytes;
}

/// A control character of ASCII, or one from U+0080 to U+009F: a terminal may obey it.
[[nodiscard]] inline bool is_control(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first < 0x20 || first == 0x7f;
  return character.size() == 2 && first == 0xc2 && static_cast<unsigned char>(character[1]) < 0xa0;
}

/// The text with '?' in place of each control character and of each byte that is not UTF-8.
[[nodiscard]] inline std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t bytes = character_bytes(text);
    if (bytes == 0 || is_control(text.substr(0, bytes)))
      out += '?';
    else
      out += text.substr(0, bytes);
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  return out;
}

}  // namespace lockflight::tool
