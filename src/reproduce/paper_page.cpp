// A paper's page. The text and tables, which a reader needs without scripts, are written here; a
// script draws the charts from the results.
#include <fmt/format.h>

#include <algorithm>
#include <regex>

#include "report/text.hpp"
#include "reproduce/page.hpp"
#include "sim/machine.hpp"

namespace lockflight::reproduce {
namespace {

using report::escape_html;

/// The part of a page for a figure or table of the paper, or for its text.
struct group {
  std::string name;  ///< "figure 3", "table 1", "text"
  std::vector<const measured_figure*> figures;
  std::vector<const outcome*> outcomes;

  /// Figures by their number, then tables, then the text.
  [[nodiscard]] std::pair<int, int> order() const {
    const std::size_t space = name.find(' ');
    if (space == std::string::npos) return {2, 0};
    return {name.starts_with("figure") ? 0 : 1, std::stoi(name.substr(space + 1))};
  }
};

/// "figure 4" of "section 5.2.1, figure 4a", and "figure 11" of "figures 11 and 12".
std::string place_of(const claim& c) {
  static const std::regex named("(figure|table)s? ([0-9]+)");
  std::smatch found;
  if (!std::regex_search(c.where, found, named)) return "text";
  return found.str(1) + ' ' + found.str(2);
}

std::vector<group> groups_of(const paper& of, const reproduction& all) {
  std::vector<group> groups;
  const auto named = [&](const std::string& name) -> group& {
    const auto at =
        std::find_if(groups.begin(), groups.end(), [&](const group& g) { return g.name == name; });
    return at != groups.end() ? *at : groups.emplace_back(group{name, {}, {}});
  };
  for (const measured_figure& f : all.figures)
    if (f.of->paper == of.name) named(f.of->name).figures.push_back(&f);
  for (const outcome& o : all.claims)
    if (o.of->paper == of.name) named(place_of(*o.of)).outcomes.push_back(&o);
  std::stable_sort(groups.begin(), groups.end(),
                   [](const group& a, const group& b) { return a.order() < b.order(); });
  return groups;
}

std::string anchor_of(const group& g) {
  std::string anchor = g.name;
  std::replace(anchor.begin(), anchor.end(), ' ', '-');
  return anchor;
}

std::string title_of(const group& g) {
  if (g.name == "text") return "Elsewhere in the text";
  std::string title = g.name;
  title.front() = static_cast<char>(title.front() - 'a' + 'A');
  return title;
}

std::string theirs(const claim& c) {
  return fmt::format("{}{:g} {}",
                     c.how_close == kind::direction ? fmt::format("{} ", c.relation) : "", c.value,
                     c.unit);
}

std::string ours(const outcome& o) {
  if (!o.ours) return "–";
  std::string text = report::rounded(*o.ours);
  // How far apart the seeds are, where that is not less than the digits of our number show.
  constexpr double shown = 0.002;
  if (o.of->how_close == kind::direction && o.spread > shown * *o.ours)
    text += fmt::format(" <span class=\"spread\">seeds {:.1g} apart</span>", o.spread);
  return text;
}

std::string row_of(const outcome& o) {
  const claim& c = *o.of;
  const char* const shown[] = {"✓ holds", "✗ misses", "? undecided"};
  const char* const classes[] = {"", " class=\"missed\"", " class=\"missed undecided\""};
  std::string remark = escape_html(remark_of(o));
  if (!o.holds() && c.because)
    remark = fmt::format("<span class=\"cause\">{}</span> {}", to_string(*c.because), remark);
  else if (o.holds() && !c.missed.empty())
    remark = "It holds, though its file says why it is missed. " + remark;
  return fmt::format(
      "<tr id=\"{0}-{1}\"{2}><td class=\"verdict-cell\">{3}</td>"
      "<td class=\"words\">{4}<small>{5} · <code>{1}</code>{6}</small></td>"
      "<td class=\"num\">{7}</td><td class=\"num\">{8}</td><td class=\"words\">{9}</td></tr>\n",
      escape_html(c.paper), escape_html(c.id), classes[static_cast<std::size_t>(o.said)],
      shown[static_cast<std::size_t>(o.said)], escape_html(c.what), escape_html(c.where),
      c.calibrated ? " · calibrated" : "", escape_html(theirs(c)), ours(o), remark);
}

std::string table_of(const group& g) {
  if (g.outcomes.empty()) return "";
  std::string rows;
  for (const outcome* const o : g.outcomes) rows += row_of(*o);
  return fmt::format(
      "<div class=\"table-wrap\" tabindex=\"0\" role=\"region\" aria-labelledby=\"{}-title\">"
      "<table class=\"verdicts\"><thead><tr><th>Verdict</th><th>What the paper says</th><th "
      "class=\"num\">Paper</th>"
      "<th class=\"num\">Ours</th><th>Remark</th></tr></thead><tbody>\n{}</tbody></table></div>\n",
      anchor_of(g), rows);
}

/// The numbers of a chart for readers without one: a row for each place, a column for each curve.
std::string numbers_of(const measured_figure& f) {
  if (f.of->points.empty()) return "";
  std::string head;
  for (const figure::curve& c : f.of->curves)
    head += fmt::format("<th class=\"num\">{}</th>", escape_html(c.name));
  std::string body;
  for (const figure::point& p : f.of->points) {
    body += fmt::format("<tr><th scope=\"row\">{}</th>", escape_html(report::plain(p.x)));
    for (const measured_figure::curve& c : f.curves) {
      const auto at = std::find_if(c.points.begin(), c.points.end(),
                                   [&](const auto& point) { return point.first == p.x; });
      body += fmt::format("<td class=\"num\">{}</td>",
                          at == c.points.end() ? "–" : report::rounded(at->second));
    }
    body += "</tr>\n";
  }
  return fmt::format(
      "<details><summary>The numbers, in {}</summary><div class=\"table-wrap\"><table><thead><tr>"
      "<th>{}</th>{}</tr></thead><tbody>\n{}</tbody></table></div></details>\n",
      escape_html(f.of->unit), escape_html(f.of->x_label), head, body);
}

/// The notes below a chart: the figure's note, where the paper's points come from, and why a curve
/// lacks one of our points.
std::string notes_of(const measured_figure& f) {
  std::string text = escape_html(f.of->note);
  const auto add = [&](const std::string& more) { text += (text.empty() ? "" : " ") + more; };
  for (const printed_point& p : f.of->printed)
    add(fmt::format("The paper's point of {} is {:g} ({}).", escape_html(p.curve), p.y,
                    escape_html(p.said)));
  for (std::size_t i = 0; i < f.curves.size(); ++i)
    if (!f.curves[i].why.empty())
      add(fmt::format("{} lacks points: {}.", escape_html(f.of->curves[i].name),
                      escape_html(f.curves[i].why)));
  return text.empty() ? "" : fmt::format("<p class=\"note\">{}</p>", text);
}

std::string card_of(const measured_figure& f, std::size_t number) {
  return fmt::format(
      "<figure class=\"card\" data-number=\"{}\"><figcaption><div class=\"titles\"><h3>{}{}</h3>"
      "</div></figcaption><div class=\"plot\"></div>{}{}</figure>\n",
      number, f.of->panel.empty() ? "" : fmt::format("({}) ", escape_html(f.of->panel)),
      escape_html(f.of->title), notes_of(f), numbers_of(f));
}

/// A chart of a group's claims for each of their units, if the group has no figure.
std::string bars_of(const group& g) {
  std::vector<std::string> drawn;
  std::string cards;
  for (const outcome* const o : g.outcomes) {
    const std::string& unit = o->of->unit;
    if (!o->ours || std::find(drawn.begin(), drawn.end(), unit) != drawn.end()) continue;
    drawn.push_back(unit);
    cards += fmt::format(
        "<figure class=\"card\" data-group=\"{}\" data-unit=\"{}\"><figcaption>"
        "<div class=\"titles\"><h3>Ours beside the paper's{}</h3></div></figcaption>"
        "<div class=\"plot\"></div></figure>\n",
        escape_html(g.name), escape_html(unit),
        unit == "x" ? ", quotients" : fmt::format(", {}", escape_html(unit)));
  }
  return cards;
}

std::string section_of(const group& g, const reproduction& page) {
  std::string cards;
  for (const measured_figure* const f : g.figures)
    for (std::size_t i = 0; i < page.figures.size(); ++i)
      if (page.figures[i].of == f->of) cards += card_of(*f, i);
  if (g.figures.empty()) cards = bars_of(g);
  tally counted;
  for (const outcome* const o : g.outcomes) counted.add(*o);
  return fmt::format(
      "<section class=\"claims\" id=\"{0}\" aria-labelledby=\"{0}-title\">"
      "<div class=\"section-head\"><h2 id=\"{0}-title\">{1}</h2><p class=\"what\">{2}</p></div>"
      "<div class=\"cards\">{3}</div>{4}</section>\n",
      anchor_of(g), title_of(g), counted.all == 0 ? "no claims" : escape_html(counted.said()),
      cards, table_of(g));
}

/// The part of a reproduction that is about one paper.
reproduction only_of(const paper& of, const reproduction& all) {
  reproduction some;
  for (const outcome& o : all.claims)
    if (o.of->paper == of.name) some.claims.push_back(o);
  for (const measured_figure& f : all.figures)
    if (f.of->paper == of.name) some.figures.push_back(f);
  return some;
}

nlohmann::json data_of(const reproduction& page) {
  nlohmann::json data = to_json(page);
  for (std::size_t i = 0; i < page.claims.size(); ++i)
    data.at("claims")[i]["group"] = place_of(*page.claims[i].of);
  return data;
}

constexpr const char* lead =
    "Each statement of the paper's text about speed is measured with the locks' own source on a "
    "simulated model of the paper's machine. A ratio holds within a factor of 1.5, a value within "
    "30&nbsp;%, and a direction if it points the same way and is farther from its bound than three "
    "seeds are from each other; otherwise it is undecided. What is undecided, and what cannot be "
    "measured, counts as missed. The machine has one set of parameters for all claims; claims with "
    "which it was chosen are marked as calibrated. Curves are ours; a ringed point is a value that "
    "the paper's text gives.";

}  // namespace

std::string page_of_paper(const paper& of, const reproduction& all, const pages_beside& beside) {
  const reproduction page = only_of(of, all);
  const std::vector<group> groups = groups_of(of, page);
  const std::string summary = tally_of(page.claims, of.name).said();
  report::slots values;
  values["title"] = escape_html(fmt::format("lockflight: {}", of.title));
  values["about"] = "a paper reproduced";
  values["summary"] =
      fmt::format("<strong>{}</strong>, on a model of {}: {}.", escape_html(of.title),
                  escape_html(of.machine), escape_html(summary));
  values["lead"] = lead;
  if (!beside.index.empty())
    values["jump"] = fmt::format("<a href=\"{}\">all papers</a>", escape_html(beside.index));
  std::vector<const outcome*> missed;
  for (const outcome& o : page.claims)
    if (!o.holds()) missed.push_back(&o);
  for (const group& g : groups) {
    tally counted;
    for (const outcome* const o : g.outcomes) counted.add(*o);
    values["jump"] += fmt::format(
        "<a href=\"#{}\">{}<span>{}</span></a>", anchor_of(g), title_of(g),
        counted.all == 0 ? "chart" : fmt::format("{} of {}", counted.held, counted.all));
    values["sections"] += section_of(g, page);
  }
  if (!missed.empty()) values["jump"] += "<a href=\"#causes\">What does not hold</a>";
  values["sections"] +=
      table_of_causes(missed, [](const claim& c) { return fmt::format("#{}-{}", c.paper, c.id); });
  values["data"] = report::script_json(data_of(page));
  return filled_page(std::move(values), "paper");
}

}  // namespace lockflight::reproduce
