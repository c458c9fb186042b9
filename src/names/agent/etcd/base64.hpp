// Base64, in which etcd's gateway has keys and values (RFC 4648, section 4, with padding).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lockflight::cluster {

[[nodiscard]] std::string to_base64(std::string_view bytes);
/// No value if the text is not exactly what to_base64 makes of some bytes.
[[nodiscard]] std::optional<std::string> from_base64(std::string_view text);

}  // namespace lockflight::cluster
