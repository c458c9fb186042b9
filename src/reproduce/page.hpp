// The files that the build embeds for the page of claims; lockflight_embed writes the definition.
#pragma once

#include <string_view>
#include <vector>

namespace lockflight::reproduce {

struct page_file {
  std::string_view name;
  std::string_view text;
};

/// template, claims (the style) and charts (the script).
[[nodiscard]] const std::vector<page_file>& page_files();

}  // namespace lockflight::reproduce
