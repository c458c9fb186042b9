// "HOST:PORT", with an IPv6 address in brackets.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/number.hpp"

namespace lockflight::cluster::link {

struct host_and_port {
  std::string host;  ///< a name, or a number without brackets
  std::uint16_t port = 0;
};

[[nodiscard]] inline std::optional<host_and_port> split_address(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto port = lockflight::read_number<std::uint16_t>(text.substr(colon + 1));
  std::string_view host = text.substr(0, colon);
  const bool has_brackets = host.starts_with('[') && host.ends_with(']');
  if (has_brackets) host = host.substr(1, host.size() - 2);
  if (!port || host.empty() || has_brackets != (host.find(':') != std::string_view::npos))
    return std::nullopt;
  return host_and_port{std::string(host), *port};
}

}  // namespace lockflight::cluster::link
