// The files that the build embeds into the library; embed.cmake writes the definitions.
#pragma once

#include <string_view>

namespace lockflight::report::assets {

std::string_view page_template();     ///< template.html
std::string_view style();             ///< report.css
std::string_view data_script();       ///< report_data.js
std::string_view draw_script();       ///< report_draw.js
std::string_view over_script();       ///< report_over.js
std::string_view charts_script();     ///< report_charts.js
std::string_view page_script();       ///< report.js
std::string_view chart_js();          ///< the charting library, minified, as the system has it
std::string_view chart_js_licence();  ///< its licence in full, which the minified file only names

}  // namespace lockflight::report::assets
