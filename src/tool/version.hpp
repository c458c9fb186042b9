#pragma once

#include <string_view>

namespace lockflight::tool {

[[nodiscard]] constexpr std::string_view version() { return LOCKFLIGHT_VERSION; }

}  // namespace lockflight::tool
