#include "agent/etcd/base64.hpp"

#include <cstdint>

namespace lockflight::cluster {
namespace {

constexpr std::string_view base64_digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string to_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::string_view three = bytes.substr(at, 3);
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < 3; ++i)
      bits = bits << 8 | (i < three.size() ? static_cast<unsigned char>(three[i]) : 0u);
    for (std::size_t i = 0; i < 4; ++i)
      text += i <= three.size() ? base64_digits[bits >> (18 - 6 * i) & 63] : '=';
  }
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (std::size_t at = 0; at < text.size(); at += 4) {
    std::string_view four = text.substr(at, 4);
    if (at + 4 == text.size()) four = four.substr(0, four.find_last_not_of('=') + 1);
    if (four.size() < 2) return std::nullopt;
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      const std::size_t digit = i < four.size() ? base64_digits.find(four[i]) : 0;
      if (digit == std::string_view::npos) return std::nullopt;
      bits = bits << 6 | static_cast<std::uint32_t>(digit);
    }
    for (std::size_t i = 0; i + 1 < four.size(); ++i)
      bytes += static_cast<char>(bits >> (16 - 8 * i) & 255);
  }
  if (to_base64(bytes) != text) return std::nullopt;  // bits that no byte has
  return bytes;
}

}  // namespace lockflight::cluster
