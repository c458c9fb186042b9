#include "domain/store/text.hpp"

#include <array>
#include <cstdio>

namespace lockflight::detail {

std::string in_a_line(std::string_view text) {
  constexpr unsigned char del = 0x7f;
  constexpr unsigned char before_c1 = 0xc2;  // of the control characters from U+0080 to U+009F
  std::string made;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    const bool is_c1 = c == before_c1 && i + 1 < text.size() &&
                       (static_cast<unsigned char>(text[i + 1]) & 0xe0) == 0x80;
    if (is_c1) ++i;
    made += c < ' ' || c == del || is_c1 ? '?' : static_cast<char>(c);
  }
  return made;
}

std::string shown(std::string_view name) {
  constexpr std::size_t most = 80;
  return "'" + in_a_line(name.substr(0, most)) + (name.size() > most ? "…'" : "'");
}

std::string mode_text(unsigned mode) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "%04o", mode);
  return text.data();
}

}  // namespace lockflight::detail
