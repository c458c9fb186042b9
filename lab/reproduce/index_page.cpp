// The index of the papers' pages.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "lab/report/text.hpp"
#include "lab/reproduce/page.hpp"

namespace lockflight::reproduce {
namespace {

using report::escape_html;

std::string bar_of(const tally& t) {
  const auto part = [&](std::size_t n, const char* what) {
    return n == 0 ? std::string()
                  : fmt::format("<span class=\"{}\" style=\"flex: {}\" title=\"{} {}\"></span>",
                                what, n, n, what);
  };
  return fmt::format(
      "<div class=\"shares\" role=\"img\" aria-label=\"{} hold, {} undecided, {} "
      "missed\">{}{}{}</div>",
      t.held, t.undecided, t.missed(), part(t.held, "held"), part(t.undecided, "undecided"),
      part(t.missed(), "missed"));
}

std::string row_of(const std::string& name, const std::string& title, const std::string& machine,
                   const tally& t) {
  return fmt::format(
      "<tr><th scope=\"row\">{}</th><td class=\"words\">{}</td><td>{}</td><td class=\"num\">{}</td>"
      "<td class=\"num\">{}</td><td class=\"num\">{}</td><td class=\"num\">{}</td>"
      "<td class=\"num\">{}</td><td>{}</td></tr>\n",
      name, title, machine, t.all, t.held, t.undecided, t.missed(), t.calibrated, bar_of(t));
}

}  // namespace

std::string page_of_index(const std::vector<paper>& papers, const reproduction& all,
                          const pages_beside& beside) {
  const std::map<std::string, std::string> href(beside.pages.begin(), beside.pages.end());
  const tally everything = tally_of(all.claims, "");
  report::slots values;
  values["title"] = escape_html("lockflight: " + everything.said());
  values["about"] = "papers reproduced";
  values["summary"] = "What papers say about the speed of their locks, measured again";
  values["verdict"] = everything.as_banner();
  values["lead"] = fmt::format(
      "<p class=\"lead\">{} how fast their locks are. Each of their statements is measured again "
      "with the locks' own source, on a simulated model of the paper's machine. A page for each "
      "paper has the statements that do not hold, with the reason for each, a chart for each "
      "figure, and the statements that hold.</p>",
      report::counted(papers.size(), "paper says", "papers say"));
  std::string rows;
  for (const paper& p : papers) {
    const tally t = tally_of(all.claims, p.name);
    if (t.all == 0) continue;
    const std::string where = escape_html(href.at(p.name));
    rows += row_of(fmt::format("<a href=\"{}\">{}</a>", where, escape_html(p.name)),
                   fmt::format("<a href=\"{}\">{}</a>", where, escape_html(p.title)),
                   escape_html(p.machine), t);
    values["jump"] += fmt::format("<a href=\"{}\">{}<span>{} of {}</span></a>", where,
                                  escape_html(p.name), t.held, t.all);
  }
  rows += row_of("all", "", "", everything);
  if (const auto at = href.find("beyond"); at != href.end())
    values["jump"] += fmt::format("<a href=\"{}\">beyond the papers<span>data</span></a>",
                                  escape_html(at->second));
  std::vector<const outcome*> missed;
  for (const outcome& o : all.claims)
    if (!o.holds()) missed.push_back(&o);
  values["sections"] = table_of_causes(missed, [&](const claim& c) {
    return fmt::format("{}#{}-{}", href.at(c.paper), c.paper, c.id);
  });
  values["sections"] += fmt::format(
      "<section class=\"claims\" id=\"papers\" aria-labelledby=\"papers-title\">"
      "<div class=\"section-head\"><h2 id=\"papers-title\">The papers</h2></div>{}</section>\n",
      framed_table("papers-title", "",
                   fmt::format("<thead><tr><th>Paper</th><th>Title</th><th>Machine</th>"
                               "<th class=\"num\">Claims</th><th class=\"num\">Hold</th>"
                               "<th class=\"num\">Undecided</th><th class=\"num\">Missed</th>"
                               "<th class=\"num\">Calibrated</th><th>Shares</th></tr></thead>"
                               "<tbody>\n{}</tbody>",
                               rows)));
  values["data"] = "{}";
  return filled_page(std::move(values), "index");
}

}  // namespace lockflight::reproduce
