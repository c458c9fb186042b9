// The page of the runs beyond the papers.
#include <fmt/format.h>

#include <algorithm>

#include "lab/report/text.hpp"
#include "lab/reproduce/page.hpp"
#include "lab/sim/machine.hpp"

namespace lockflight::reproduce {
namespace {

using report::escape_html;

using curves = std::vector<measured_curve>;

curves those_on(const curves& all, const std::string& machine, double writers) {
  curves some;
  std::copy_if(all.begin(), all.end(), std::back_inserter(some), [&](const measured_curve& c) {
    return c.of.machine == machine && c.of.writers == writers && !is_k_computer(c.of);
  });
  return some;
}

std::string fastest_table(const curves& all) {
  std::string rows;
  for (const fastest& f : fastest_of(all))
    rows += fmt::format(
        "<tr><th scope=\"row\">{}</th><td>{}</td><td class=\"words\">{}</td><td "
        "class=\"num\">{}</td><td class=\"num\">{}</td></tr>\n",
        escape_html(f.machine), said_of_writers(f.writers), escape_html(f.said()),
        report::scaled(f.ops_s_at_most), report::rounded(f.times_slowest));
  return framed_table(
      "beyond-title", "",
      fmt::format("<thead><tr><th>Machine</th><th>Writers</th><th>Fastest, at so many ranks</th>"
                  "<th class=\"num\">Ops/s at the most ranks</th>"
                  "<th class=\"num\">× the slowest there</th></tr></thead><tbody>\n{}</tbody>",
                  rows));
}

std::string numbers_of(const curves& some) {
  std::string head;
  std::string body;
  for (const measured_curve& c : some)
    head += fmt::format("<th class=\"num\">{}</th>", escape_html(c.of.lock));
  for (const run& what : some.front().of.runs) {
    const int procs = what.at("procs");
    body += fmt::format("<tr><th scope=\"row\">{}</th>", report::rounded(procs));
    for (const measured_curve& c : some) {
      const nlohmann::json* const point = point_at(c, procs);
      body += fmt::format(
          "<td class=\"num\">{}</td>",
          point == nullptr ? "–" : report::scaled(point->at("throughput_ops_s").get<double>()));
    }
    body += "</tr>\n";
  }
  return fmt::format(
      "<details><summary>Operations a second</summary><div class=\"table-wrap\"><table><thead><tr>"
      "<th>Ranks</th>{}</tr></thead><tbody>\n{}</tbody></table></div></details>\n",
      head, body);
}

std::string card_of(const curves& all, const std::string& machine, double writers) {
  const curves some = those_on(all, machine, writers);
  if (some.empty()) return "";
  std::string ends;
  for (const std::string& end : ends_of(all, machine, writers, true))
    ends += (ends.empty() ? "" : ", ") + end;
  return fmt::format(
      "<figure class=\"card\" data-machine=\"{0}\" data-writers=\"{1}\">"
      "<figcaption><div class=\"titles\"><h3>{0}: {2}</h3></div></figcaption>"
      "<div class=\"plot\"></div>{3}{4}</figure>\n",
      escape_html(machine), writers, said_of_writers(writers),
      ends.empty() ? "" : fmt::format("<p class=\"note\">Ends before: {}.</p>", escape_html(ends)),
      numbers_of(some));
}

std::string section_of(const curves& all) {
  std::string cards;
  for (const std::string& machine : sim::names_of_machines())
    for (const double writers : {1.0, few_writers}) cards += card_of(all, machine, writers);
  return fmt::format(
      "<section class=\"claims\" id=\"beyond\" aria-labelledby=\"beyond-title\">"
      "<div class=\"section-head\"><h2 id=\"beyond-title\">Beyond the papers <code>beyond</code>"
      "</h2><p class=\"what\">every lock on every machine: data, no claims</p></div>"
      "<p>{}</p>{}<div class=\"controls\"><div class=\"legend\" id=\"beyond-legend\" "
      "role=\"group\" aria-label=\"Locks: press to hide or show\"></div></div>"
      "<div class=\"cards\">{}</div></section>\n",
      escape_html(said_of_k_computer(all)), fastest_table(all), cards);
}

}  // namespace

std::string page_of_beyond(const reproduction& all, const pages_beside& beside) {
  report::slots values;
  values["title"] = "lockflight: beyond the papers";
  values["about"] = "beyond the papers";
  values["summary"] = "Every lock on every machine.";
  values["verdict"] = "";
  values["lead"] = fmt::format(
      "<p class=\"lead\">One lock, whose holder reads or writes a word beside it (workload sob). Either all write, "
      "or 0.2&nbsp;% of the operations do and the others share a reader-writer lock. No operation "
      "is left out as a warm-up. Where a run takes more than {}, the lock's curve ends, and a "
      "note says so.</p>",
      most_of_a_point());
  if (!beside.index.empty())
    values["jump"] = fmt::format("<a href=\"{}\">all papers</a>", escape_html(beside.index));
  else
    values["jump"] = "";
  values["sections"] = section_of(all.beyond);
  reproduction curves_alone;
  curves_alone.beyond = all.beyond;
  values["data"] = report::script_json(to_json(curves_alone));
  return filled_page(std::move(values), "beyond");
}

}  // namespace lockflight::reproduce
