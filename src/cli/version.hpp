#pragma once

#include <string_view>

namespace lockflight::cli {

[[nodiscard]] constexpr std::string_view version() { return LOCKFLIGHT_VERSION; }

}  // namespace lockflight::cli
