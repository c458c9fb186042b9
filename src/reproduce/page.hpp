// The files that the build embeds for the page of claims; lockflight_embed writes the definition.
#pragma once

#include <vector>

#include "report/page.hpp"

namespace lockflight::reproduce {

/// template, claims (the style) and charts (the script).
[[nodiscard]] const std::vector<report::page_part>& page_files();

}  // namespace lockflight::reproduce
