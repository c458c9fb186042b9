// The common parts of the program's pages: a head, a brand, a foot, the style, the charting
// library.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lab/report/text.hpp"

namespace lockflight::report {

/// A file that the build embeds, by its name without folder and extension (lockflight_embed).
struct page_part {
  std::string_view name;
  std::string_view text;
};

/// Throws std::logic_error if there is none of that name.
[[nodiscard]] std::string_view part_named(const std::vector<page_part>& parts,
                                          std::string_view name);

/// The files of this folder, and the charting library. Generated (CMakeLists.txt).
[[nodiscard]] const std::vector<page_part>& page_parts();

/// Fills a page's template, in which {{head}}, {{brand}}, {{foot}} and {{scripts}} (charting,
/// reading and drawing a run, and controls) are the common parts. Besides its own slots the
/// template needs `title`, `about` and `version`, as HTML; `own_style` is added to the style. The
/// charts highlight the project's own locks.
[[nodiscard]] std::string page_of(std::string_view body, slots values,
                                  const std::vector<std::string>& own_locks);

/// The line at the top of a page that says whether all is well: `state` is "good", "bad" or "none".
[[nodiscard]] std::string banner(std::string_view state, std::string_view mark,
                                 const std::string& headline, const std::string& detail);

}  // namespace lockflight::report
