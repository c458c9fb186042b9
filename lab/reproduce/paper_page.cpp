// A paper's page: what does not hold, the charts, what holds. The text and tables, which a reader
// needs without scripts, are written here; a script draws the charts from the results.
#include <fmt/format.h>

#include <algorithm>
#include <regex>

#include "lab/report/text.hpp"
#include "lab/reproduce/page.hpp"
#include "lab/sim/machine.hpp"

namespace lockflight::reproduce {
namespace {

using report::escape_html;

/// A figure or table of the paper, or its text: our curves of it, and the claims that name it.
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

std::string remark_in_html(const outcome& o) {
  const std::string remark = escape_html(remark_of(o));
  if (!o.holds() && o.of->because)
    return fmt::format("<span class=\"cause\">{}</span> {}", to_string(*o.of->because), remark);
  if (o.holds() && !o.of->missed.empty())
    return "It holds, though its file says why it is missed. " + remark;
  return remark;
}

/// A claim's row without its remark.
std::string row_of(const outcome& o) {
  const claim& c = *o.of;
  const char* const shown[] = {"✓ holds", "✗ misses", "? undecided"};
  const char* const classes[] = {"", " class=\"missed\"", " class=\"missed undecided\""};
  return fmt::format(
      "<tr id=\"{0}-{1}\"{2}><td class=\"verdict-cell\">{3}</td>"
      "<td class=\"words\">{4}<small>{5} · <code>{1}</code>{6}</small></td>"
      "<td class=\"num\">{7}</td><td class=\"num\">{8}</td>",
      escape_html(c.paper), escape_html(c.id), classes[static_cast<std::size_t>(o.said)],
      shown[static_cast<std::size_t>(o.said)], escape_html(c.what), escape_html(c.where),
      c.calibrated ? " · calibrated" : "", escape_html(theirs(c)), ours(o));
}

/// Claims with the same remark that follow each other share its cell.
std::string table_of(const std::vector<const outcome*>& outcomes, const std::string& title) {
  std::string rows;
  for (std::size_t i = 0; i < outcomes.size();) {
    const std::string remark = remark_in_html(*outcomes[i]);
    std::size_t end = i + 1;
    while (end < outcomes.size() && !remark.empty() && remark_in_html(*outcomes[end]) == remark)
      ++end;
    rows += row_of(*outcomes[i]) +
            fmt::format("<td class=\"words\"{}>{}</td></tr>\n",
                        end - i == 1 ? "" : fmt::format(" rowspan=\"{}\"", end - i), remark);
    for (++i; i < end; ++i) rows += row_of(*outcomes[i]) + "</tr>\n";
  }
  return framed_table(
      title, " class=\"verdicts\"",
      fmt::format("<thead><tr><th>Verdict</th><th>What the paper says</th><th class=\"num\">Paper"
                  "</th><th class=\"num\">Ours</th><th>Remark</th></tr></thead><tbody>\n{}</tbody>",
                  rows));
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

tally tally_of_group(const group& g) {
  tally counted;
  for (const outcome* const o : g.outcomes) counted.add(*o);
  return counted;
}

/// How many claims of a figure hold, with links to them and to the others.
std::string verdicts_of(const group& g) {
  const tally counted = tally_of_group(g);
  if (counted.all == 0) return "";
  std::string text;
  if (counted.held > 0)
    text = fmt::format("<a class=\"held\" href=\"#{}-held\">✓ {} of {} {}</a>", anchor_of(g),
                       counted.held, report::counted(counted.all, "claim", "claims"),
                       counted.all == 1 ? "holds" : "hold");
  if (const std::size_t others = counted.all - counted.held; others > 0)
    text += fmt::format("{}<a class=\"missed\" href=\"#missed\">✗ {} {}</a>",
                        text.empty() ? "" : ", ", others, others == 1 ? "other" : "others");
  return fmt::format("<p class=\"note\">{}: {}</p>", title_of(g), text);
}

/// A chart: `attributes` say what the script draws; the rest is HTML.
struct card {
  std::string attributes;
  std::string title;
  std::string subtitle;
  std::string below;
};

/// The charts of a figure's panels.
std::vector<card> panels_of(const group& g, const reproduction& page) {
  std::vector<card> cards;
  for (const measured_figure* const f : g.figures)
    for (std::size_t i = 0; i < page.figures.size(); ++i)
      if (page.figures[i].of == f->of)
        cards.push_back({fmt::format("data-number=\"{}\"", i),
                         f->of->panel.empty()
                             ? title_of(g)
                             : fmt::format("{} ({})", title_of(g), escape_html(f->of->panel)),
                         escape_html(f->of->title), notes_of(*f) + numbers_of(*f)});
  return cards;
}

/// "values", "bounds" or both: the paper's numbers of a group's claims with that unit.
std::string numbers_of_the_paper(const group& g, const std::string& unit) {
  const auto has = [&](bool bound) {
    return std::any_of(g.outcomes.begin(), g.outcomes.end(), [&](const outcome* o) {
      return o->ours && o->of->unit == unit && (o->of->how_close == kind::direction) == bound;
    });
  };
  return !has(true) ? "values" : !has(false) ? "bounds" : "values and bounds";
}

/// A chart of a group's claims for each of their units.
std::vector<card> bars_of(const group& g) {
  std::vector<std::string> drawn;
  std::vector<card> cards;
  for (const outcome* const o : g.outcomes) {
    const std::string& unit = o->of->unit;
    if (!o->ours || std::find(drawn.begin(), drawn.end(), unit) != drawn.end()) continue;
    drawn.push_back(unit);
    cards.push_back(
        {fmt::format("data-group=\"{}\" data-unit=\"{}\"", escape_html(g.name), escape_html(unit)),
         title_of(g),
         fmt::format("The paper's {} (plain) and ours{}", numbers_of_the_paper(g, unit),
                     unit == "x" ? ", quotients" : fmt::format(", {}", escape_html(unit))),
         ""});
  }
  return cards;
}

/// A group without a figure has its claims as bars.
std::vector<card> cards_of(const group& g, const reproduction& page) {
  return g.figures.empty() ? bars_of(g) : panels_of(g, page);
}

std::string charts_of(const std::vector<group>& groups, const reproduction& page) {
  std::string cards;
  for (const group& g : groups) {
    // The first chart of a figure is where links to the figure lead.
    bool is_first = true;
    for (const card& one : cards_of(g, page)) {
      cards += fmt::format(
          "<figure class=\"card\"{} {}><figcaption><div class=\"titles\"><h3>{}</h3><p>{}</p></div>"
          "</figcaption><div class=\"plot\"></div>{}{}</figure>\n",
          is_first ? fmt::format(" id=\"{}\"", anchor_of(g)) : "", one.attributes, one.title,
          one.subtitle, is_first ? verdicts_of(g) : "", one.below);
      is_first = false;
    }
  }
  if (cards.empty()) return "";
  return fmt::format(
      "<section class=\"claims\" id=\"charts\" aria-labelledby=\"charts-title\">"
      "<div class=\"section-head\"><h2 id=\"charts-title\">Charts</h2><p class=\"what\">our "
      "curves on the axes of the paper's figures; a ringed point is a value that the paper's text "
      "gives</p></div><div class=\"cards\">{}</div></section>\n",
      cards);
}

/// The claims that miss by a cause, those with the same remark together.
std::vector<const outcome*> missed_by(const std::optional<cause>& why, const reproduction& page) {
  std::vector<const outcome*> left;
  for (const outcome& o : page.claims)
    if (!o.holds() && o.of->because == why) left.push_back(&o);
  for (auto at = left.begin(); at != left.end();) {
    const std::string remark = remark_of(**at);
    at = std::stable_partition(at, left.end(),
                               [&](const outcome* o) { return remark_of(*o) == remark; });
  }
  return left;
}

/// The claims that do not hold, those of a cause together.
std::string section_of_missed(const reproduction& page) {
  std::vector<const outcome*> missed;
  std::string causes;
  for (const std::optional<cause>& why : all_causes()) {
    const std::vector<const outcome*> some = missed_by(why, page);
    if (some.empty()) continue;
    missed.insert(missed.end(), some.begin(), some.end());
    causes += fmt::format("{}{} {}", causes.empty() ? "" : " · ", said(why).name, some.size());
  }
  if (missed.empty()) return "";
  return fmt::format(
      "<section class=\"claims\" id=\"missed\" aria-labelledby=\"missed-title\">"
      "<div class=\"section-head\"><h2 id=\"missed-title\">What does not hold</h2>"
      "<p class=\"what\">by cause: {}</p></div>{}</section>\n",
      causes, table_of(missed, "missed-title"));
}

/// The claims that hold, in a list that opens for each figure.
std::string section_of_held(const std::vector<group>& groups) {
  std::string lists;
  for (const group& g : groups) {
    std::vector<const outcome*> held;
    std::copy_if(g.outcomes.begin(), g.outcomes.end(), std::back_inserter(held),
                 [](const outcome* o) { return o->holds(); });
    if (held.empty()) continue;
    // A link to what is inside opens the list.
    lists += fmt::format(
        "<details class=\"held-list\"><summary><span id=\"{0}-held-title\">{1}</span>: {2} of "
        "{3}</summary><div id=\"{0}-held\">{4}</div></details>\n",
        anchor_of(g), title_of(g), held.size(),
        report::counted(g.outcomes.size(), "claim", "claims"),
        table_of(held, anchor_of(g) + "-held-title"));
  }
  if (lists.empty()) return "";
  return fmt::format(
      "<section class=\"claims\" id=\"held\" aria-labelledby=\"held-title\">"
      "<div class=\"section-head\"><h2 id=\"held-title\">What holds</h2></div>{}</section>\n",
      lists);
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
    "<p class=\"lead\">Each statement of the paper's text about speed is measured with the locks' "
    "own source on a simulated model of the paper's machine.</p><details class=\"judging\">"
    "<summary>When a claim holds</summary><p>A ratio holds within a factor of 1.5, a value within "
    "30&nbsp;%, and a direction if it points the same way and is farther from its bound than three "
    "seeds are from each other; otherwise it is undecided. What is undecided, and what cannot be "
    "measured, counts as missed. The machine has one set of parameters for all claims; claims with "
    "which it was chosen are marked as calibrated.</p></details>";

}  // namespace

std::string page_of_paper(const paper& of, const reproduction& all, const pages_beside& beside) {
  const reproduction page = only_of(of, all);
  const std::vector<group> groups = groups_of(of, page);
  const tally counted = tally_of(page.claims, of.name);
  report::slots values;
  values["title"] = escape_html(fmt::format("lockflight: {}", of.title));
  values["about"] = "a paper reproduced";
  values["summary"] = fmt::format("<strong>{}</strong>, on a model of {}", escape_html(of.title),
                                  escape_html(of.machine));
  values["verdict"] = counted.as_banner();
  values["lead"] = lead;
  if (!beside.index.empty())
    values["jump"] = fmt::format("<a href=\"{}\">all papers</a>", escape_html(beside.index));
  if (counted.held < counted.all)
    values["jump"] += fmt::format("<a href=\"#missed\">What does not hold<span>{}</span></a>",
                                  counted.all - counted.held);
  for (const group& g : groups) {
    const tally of_group = tally_of_group(g);
    values["jump"] += fmt::format(
        "<a href=\"#{}\">{}<span>{}</span></a>",
        cards_of(g, page).empty() ? "missed" : anchor_of(g), title_of(g),
        of_group.all == 0 ? "chart" : fmt::format("{} of {}", of_group.held, of_group.all));
  }
  if (counted.held > 0) values["jump"] += "<a href=\"#held\">What holds</a>";
  values["sections"] = section_of_missed(page) + charts_of(groups, page) + section_of_held(groups);
  values["data"] = report::script_json(data_of(page));
  return filled_page(std::move(values), "paper");
}

}  // namespace lockflight::reproduce
