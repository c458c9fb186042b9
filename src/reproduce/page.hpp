// The files that the build embeds for the page of claims; lockflight_embed writes the definition.
#pragma once

#include <string>
#include <vector>

#include "report/page.hpp"
#include "reproduce/reproduce.hpp"

namespace lockflight::reproduce {

/// template, claims (the style), charts and beyond (the scripts).
[[nodiscard]] const std::vector<report::page_part>& page_files();

/// A page with a row for each claim and a chart for each figure, and of curves a chart for each
/// machine and share of writers. `papers` are the papers of the claims.
[[nodiscard]] std::string render_html(const std::vector<paper>& papers, const reproduction& all);

/// Curves as a section of the page; empty if there are none.
[[nodiscard]] std::string beyond_section(const std::vector<measured_curve>& all);

}  // namespace lockflight::reproduce
