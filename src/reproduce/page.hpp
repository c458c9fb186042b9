// The files that the build embeds for the page of claims; lockflight_embed writes the definition.
#pragma once

#include <string>
#include <vector>

#include "report/page.hpp"
#include "reproduce/beyond.hpp"

namespace lockflight::reproduce {

/// template, claims (the style), charts and beyond (the scripts).
[[nodiscard]] const std::vector<report::page_part>& page_files();

/// Curves as a section of the page; empty if there are none.
[[nodiscard]] std::string beyond_section(const std::vector<measured_curve>& all);

}  // namespace lockflight::reproduce
