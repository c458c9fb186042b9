// The pages that a reproduction becomes: one for each paper, one for the runs beyond the papers,
// and an index of these.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lab/report/page.hpp"
#include "lab/reproduce/reproduce.hpp"

namespace lockflight::reproduce {

/// The other pages of a set, as links: the index, and each page's name with where it lies. All
/// empty for a page that stands alone.
struct pages_beside {
  std::string index;
  std::vector<std::pair<std::string, std::string>> pages;
};

/// A paper's page, as one would hand it to the paper's author: first the claims that do not hold,
/// with the reason; then for each figure charts with our curves on the figure's axes; then the
/// claims that hold.
[[nodiscard]] std::string page_of_paper(const paper& of, const reproduction& all,
                                        const pages_beside& beside = {});

/// The page of the runs beyond the papers: a chart for each machine and share of writers.
[[nodiscard]] std::string page_of_beyond(const reproduction& all, const pages_beside& beside = {});

/// The index: of each paper how many claims hold, and why the others do not.
[[nodiscard]] std::string page_of_index(const std::vector<paper>& papers, const reproduction& all,
                                        const pages_beside& beside);

// ---- what the pages are made of ----

/// The files that the build embeds; lockflight_embed writes the definition.
[[nodiscard]] const std::vector<report::page_part>& page_files();

/// The template filled with what all of these pages have. `values` needs `title`, `about`,
/// `summary`, `verdict`, `lead`, `jump`, `sections` and `data` (JSON), as HTML. `script` names the
/// one that draws.
[[nodiscard]] std::string filled_page(report::slots values, std::string_view script);

/// A table in a frame that scrolls, named by the heading `title`. `body` are its head and its rows.
[[nodiscard]] std::string framed_table(std::string_view title, std::string_view attributes,
                                       std::string_view body);

/// The number of claims with each verdict.
struct tally {
  std::size_t all = 0;
  std::size_t held = 0;
  std::size_t undecided = 0;
  std::size_t calibrated = 0;

  void add(const outcome& o);
  [[nodiscard]] std::size_t missed() const { return all - held - undecided; }
  /// "39 of 62 claims hold, 2 undecided; 2 calibrated".
  [[nodiscard]] std::string said() const;
  /// The same as the line at the top of a page, with how many do not hold.
  [[nodiscard]] std::string as_banner() const;
};
[[nodiscard]] tally tally_of(const std::vector<outcome>& outcomes, const std::string& paper);

/// The name of a cause of a miss, and what it means.
struct said_of_cause {
  const char* name;
  const char* said;
};
[[nodiscard]] said_of_cause said(const std::optional<cause>& why);
/// All causes in the order of the tables; the last one is none.
[[nodiscard]] const std::vector<std::optional<cause>>& all_causes();

/// A table with a row for each cause of misses, of the outcomes that do not hold. `href_of` says
/// where the claim's row is.
[[nodiscard]] std::string table_of_causes(const std::vector<const outcome*>& missed,
                                          const std::function<std::string(const claim&)>& href_of);

}  // namespace lockflight::reproduce
