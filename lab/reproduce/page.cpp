// The common parts of the pages.
#include "lab/reproduce/page.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lab/bench/bench.hpp"
#include "lab/report/text.hpp"

namespace lockflight::reproduce {
using report::escape_html;

said_of_cause said(const std::optional<cause>& why) {
  if (!why) return {"no cause known", "The claim's file gives no reason."};
  switch (*why) {
    case cause::model:
      return {"the model of the machine", "The model lacks a cost, or has another one."};
    case cause::lock:
      return {"our lock", "Our lock differs from the one that the authors measured."};
    case cause::workload:
      return {"our run", "Our run differs from the authors' run."};
    case cause::paper:
      return {"the paper", "The paper leaves something open, or contradicts itself."};
  }
  return {"", ""};
}

const std::vector<std::optional<cause>>& all_causes() {
  static const std::vector<std::optional<cause>> all{cause::model, cause::lock, cause::workload,
                                                     cause::paper, std::nullopt};
  return all;
}

std::string framed_table(std::string_view title, std::string_view attributes,
                         std::string_view body) {
  return fmt::format(
      "<div class=\"table-wrap\" tabindex=\"0\" role=\"region\" aria-labelledby=\"{}\">"
      "<table{}>{}</table></div>\n",
      title, attributes, body);
}

void tally::add(const outcome& o) {
  ++all;
  held += o.holds() ? 1 : 0;
  undecided += o.said == verdict::undecided ? 1 : 0;
  calibrated += o.of->calibrated ? 1 : 0;
}

std::string tally::said() const {
  return fmt::format("{} of {} {}{}{}", held, report::counted(all, "claim", "claims"),
                     all == 1 ? "holds" : "hold",
                     undecided == 0 ? "" : fmt::format(", {} undecided", undecided),
                     calibrated == 0 ? "" : fmt::format("; {} calibrated", calibrated));
}

std::string tally::as_banner() const {
  if (all == 0) return report::banner("none", "–", "No claims.", "");
  if (held == all) return report::banner("good", "✓", said() + ".", "");
  return report::banner("none", "!", said() + ".",
                        all - held == 1
                            ? "The other one comes first below."
                            : fmt::format("The other {} come first below.", all - held));
}

tally tally_of(const std::vector<outcome>& outcomes, const std::string& paper) {
  tally made;
  for (const outcome& o : outcomes)
    if (paper.empty() || o.of->paper == paper) made.add(o);
  return made;
}

std::string table_of_causes(const std::vector<const outcome*>& missed,
                            const std::function<std::string(const claim&)>& href_of) {
  if (missed.empty()) return "";
  std::string rows;
  for (const std::optional<cause>& why : all_causes()) {
    std::string links;
    std::size_t count = 0;
    for (const outcome* const o : missed) {
      if (o->of->because != why) continue;
      ++count;
      links += fmt::format("{}<a href=\"{}\">{}</a>", links.empty() ? "" : ", ",
                           escape_html(href_of(*o->of)), escape_html(o->of->id));
    }
    if (count == 0) continue;
    rows += fmt::format(
        "<tr><th scope=\"row\">{}</th><td class=\"num\">{}</td><td class=\"words\">{}</td>"
        "<td class=\"words links\">{}</td></tr>\n",
        said(why).name, count, said(why).said, links);
  }
  return fmt::format(
      "<section class=\"claims\" id=\"causes\" aria-labelledby=\"causes-title\">"
      "<div class=\"section-head\"><h2 id=\"causes-title\">What does not hold, by cause</h2></div>"
      "{}</section>\n",
      framed_table("causes-title", "",
                   fmt::format("<thead><tr><th>Cause</th><th class=\"num\">Claims</th>"
                               "<th>That is</th><th>Which</th></tr></thead><tbody>\n{}</tbody>",
                               rows)));
}

std::string filled_page(report::slots values, std::string_view script) {
  values["version"] = LOCKFLIGHT_VERSION;
  values["own_style"] = report::part_named(page_files(), "pages");
  values["own_script"] = report::part_named(page_files(), script);
  return report::page_of(report::part_named(page_files(), "template"), std::move(values),
                         bench::own_locks());
}

}  // namespace lockflight::reproduce
