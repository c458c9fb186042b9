// Files of the kernel, as those of /proc, which may be gone from one moment to the next.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockflight::cli {

/// The text behind `key` in the line of `text` that begins with it.
[[nodiscard]] std::optional<std::string_view> value_of(std::string_view key, std::string_view text);
/// The numbers that are names of files in that folder, in its order.
[[nodiscard]] std::vector<int> numbers_in(const std::string& path);

}  // namespace lockflight::cli
