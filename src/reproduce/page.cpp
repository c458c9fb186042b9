// The page. The text and tables, which a reader needs without scripts, are written here; a script
// draws the charts from the results.
#include "reproduce/page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "report/text.hpp"
#include "reproduce/reproduce.hpp"

namespace lockflight::reproduce {
namespace {

using report::escape_html;

struct tally {
  std::size_t held = 0;
  std::size_t all = 0;
  std::size_t calibrated = 0;
};

tally tally_of(const std::vector<outcome>& outcomes, const std::string& paper) {
  tally made;
  for (const outcome& o : outcomes) {
    if (!paper.empty() && o.of->paper != paper) continue;
    ++made.all;
    made.held += o.holds() ? 1 : 0;
    made.calibrated += o.of->calibrated ? 1 : 0;
  }
  return made;
}

std::string said(const tally& t) {
  return fmt::format("{} of {} hold; {} calibrated", t.held,
                     report::counted(t.all, "claim", "claims"), t.calibrated);
}

std::string theirs(const claim& c) {
  return fmt::format("{}{:g} {}",
                     c.how_close == kind::direction ? fmt::format("{} ", c.relation) : "", c.value,
                     c.unit);
}

std::string row_of(const outcome& o) {
  const claim& c = *o.of;
  return fmt::format(
      "<tr id=\"{0}-{1}\"{2}><th scope=\"row\">{1}</th><td class=\"num\">{3}</td>"
      "<td class=\"num\">{4}</td><td class=\"verdict-cell\">{5}</td><td>{6}</td>"
      "<td class=\"words\">{7}</td><td class=\"words\">{8}</td><td class=\"words\">{9}</td></tr>\n",
      escape_html(c.paper), escape_html(c.id), o.holds() ? "" : " class=\"missed\"",
      escape_html(theirs(c)), o.ours ? report::rounded(*o.ours) : "–",
      o.holds()                      ? "✓ holds"
      : o.said == verdict::undecided ? "? undecided"
                                     : "✗ misses",
      c.calibrated ? "yes" : "", escape_html(c.what), escape_html(remark_of(o)),
      escape_html(c.where));
}

/// One card for each figure and unit that has something to draw, in the order of the claims.
std::string cards_of(const paper& p, const std::vector<outcome>& outcomes) {
  std::vector<std::pair<std::string, std::string>> drawn;
  std::string out;
  for (const outcome& o : outcomes) {
    if (o.of->paper != p.name || !o.ours) continue;
    const std::pair<std::string, std::string> which{figure_of(*o.of), o.of->unit};
    if (std::find(drawn.begin(), drawn.end(), which) != drawn.end()) continue;
    drawn.push_back(which);
    std::string title = which.first == "text" ? "in the text" : which.first;
    title.front() = static_cast<char>(title.front() - 'a' + 'A');
    out += fmt::format(
        "<figure class=\"card\" data-paper=\"{}\" data-figure=\"{}\" data-unit=\"{}\">"
        "<figcaption><div class=\"titles\"><h3>{}</h3></div></figcaption>"
        "<div class=\"plot\"></div></figure>\n",
        escape_html(p.name), escape_html(which.first), escape_html(which.second),
        escape_html(title));
  }
  return out;
}

std::string section_of(const paper& p, const std::vector<outcome>& outcomes) {
  std::string rows;
  for (const outcome& o : outcomes)
    if (o.of->paper == p.name) rows += row_of(o);
  return fmt::format(
      "<section class=\"claims\" id=\"{0}\" aria-labelledby=\"{0}-title\">"
      "<div class=\"section-head\"><h2 id=\"{0}-title\">{1} <code>{0}</code></h2>"
      "<p class=\"what\">on a model of {2}: {3}</p></div>"
      "<p class=\"note\"><span class=\"key theirs\"></span>paper<span class=\"key held\"></span>"
      "ours, holds<span class=\"key missed\"></span>ours, misses; of a direction, the bound that "
      "the paper gives</p>"
      "<div class=\"cards\">{4}</div><div class=\"table-wrap\" tabindex=\"0\" role=\"region\" "
      "aria-labelledby=\"{0}-title\"><table><thead><tr><th>Claim</th><th class=\"num\">Paper</th>"
      "<th class=\"num\">Ours</th><th>Verdict</th><th>Calibrated</th><th>What</th><th>Remark</th>"
      "<th>Where</th></tr></thead><tbody>\n{5}</tbody></table></div></section>\n",
      escape_html(p.name), escape_html(p.title), escape_html(p.machine),
      escape_html(said(tally_of(outcomes, p.name))), cards_of(p, outcomes), rows);
}

nlohmann::json with_figures(const reproduction& of) {
  nlohmann::json all = to_json(of);
  for (std::size_t i = 0; i < of.claims.size(); ++i)
    all.at("claims")[i]["figure"] = figure_of(*of.claims[i].of);
  return all;
}

}  // namespace

std::string render_html(const std::vector<paper>& papers, const reproduction& all) {
  const std::vector<outcome>& outcomes = all.claims;
  report::slots values{{"sections", ""}, {"jump", ""}};
  const std::string summary =
      outcomes.empty() ? "every lock on every machine" : said(tally_of(outcomes, ""));
  values["title"] = escape_html("lockflight: " + summary);
  values["version"] = LOCKFLIGHT_VERSION;
  values["summary"] = escape_html(summary + ".");
  for (const paper& p : papers) {
    if (tally_of(outcomes, p.name).all == 0) continue;
    values["sections"] += section_of(p, outcomes);
    const tally t = tally_of(outcomes, p.name);
    values["jump"] += fmt::format("<a href=\"#{0}\">{0}<span>{1} of {2}</span></a>",
                                  escape_html(p.name), t.held, t.all);
  }
  values["no_claims"] = outcomes.empty() ? " hidden" : "";
  values["beyond"] = beyond_section(all.beyond);
  if (!all.beyond.empty()) values["jump"] += "<a href=\"#beyond\">beyond<span>data</span></a>";
  values["claims_json"] = report::script_json(with_figures(all));
  values["about"] = "papers reproduced";
  values["own_style"] = report::part_named(page_files(), "claims");
  values["beyond_script"] = report::part_named(page_files(), "beyond");
  values["own_script"] = report::part_named(page_files(), "charts");
  return report::page_of(report::part_named(page_files(), "template"), std::move(values));
}

}  // namespace lockflight::reproduce
